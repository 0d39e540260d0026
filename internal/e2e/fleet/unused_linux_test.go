package fleet

import (
	"encoding/json"
	"strings"
	"testing"

	"spamgate/internal/admin"
	"spamgate/internal/e2e/harness"
)

// TestUnused has each of three gates see mail from another sender. An entry is unused if none has.
func TestUnused(t *testing.T) {
	t.Parallel()
	day := harness.Today()
	n := harness.StartNATS(t)
	gates := startMembers(t, n, "mx1", "mx2", "mx3")
	for _, name := range []string{"mx1.example", "mx2.example", "mx3.example", "never.example", "also-never.example"} {
		gates[0].Lists(t, 0, "add", name, "--reason", "a test")
	}
	waitEqual(t, gates...)
	for _, g := range gates {
		g.refuses(t, "a@"+g.name+".example")
	}
	harness.SkipAfter(t, day)
	unused := func(code int, args ...string) (entries []string, text string) {
		t.Helper()
		text = gates[0].Lists(t, code, append([]string{"unused", "shared", "--since", day}, args...)...)
		for line := range strings.Lines(text) {
			if fields := strings.Split(line, "\t"); len(fields) == 3 {
				entries = append(entries, fields[1])
			}
		}
		return entries, text
	}
	want := func(got []string, text, want string, words ...string) {
		t.Helper()
		if strings.Join(got, " ") != want {
			t.Errorf("unused: %v, want %s", got, want)
		}
		for _, w := range words {
			if !strings.Contains(strings.Join(strings.Fields(text), " "), w) {
				t.Errorf("there is no %q in\n%s", w, text)
			}
		}
	}
	harness.WaitFor(t, "the others are known", func() bool { return len(gates[0].status().Members) == 3 })
	got, text := unused(0)
	want(got, text, "never.example also-never.example", "Asked the fleet: mx1, mx2, mx3 answered.")
	got, text = unused(0, "--here")
	want(got, text, "mx2.example mx3.example never.example also-never.example")
	if strings.Contains(text, "Asked the fleet") {
		t.Error(text)
	}

	gates[2].kill()
	got, text = unused(1)
	want(got, text, "mx3.example never.example also-never.example", "INCOMPLETE: no answer from mx3: entries may have matched there")
	lines := gates[0].Lists(t, 1, "unused", "shared", "--since", day, "--json")
	first, _, _ := strings.Cut(lines, "\n")
	var head struct {
		List       string
		Fleet      admin.UnusedFleet
		Incomplete bool
	}
	if err := json.Unmarshal([]byte(first), &head); err != nil || !head.Incomplete || strings.Join(head.Fleet.Missing, " ") != "mx3" || head.List != "shared" {
		t.Errorf("%s: %+v, %v", first, head, err)
	}

	n.Kill()
	_, text = unused(2)
	want(nil, text, "", "the other gates of the fleet cannot be asked", "--here is about this gate alone")
	got, text = unused(0, "--here")
	want(got, text, "mx2.example mx3.example never.example also-never.example")
	gates[0].Stop()
	_, text = unused(2)
	want(nil, text, "", "--here is about this gate alone")
	got, text = unused(0, "--here")
	want(got, text, "mx2.example mx3.example never.example also-never.example")
}
