package fleet

import (
	"os/exec"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestWhy asks one gate what happened to a message on another, also when that is dead.
func TestWhy(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	sites := startSites(t, n, "mx1", "mx2")
	site, two := sites[0], sites[1]
	id := two.refuse(t, "b@spam.example", "ann@example.net")
	text := site.Command(t, 0, "why", id)
	for _, want := range []string{"gate mx2 from <b@spam.example>", "The gate refused the sender <b@spam.example>: list shared has spam.example", "Asked the fleet: mx1, mx2 answered.", "b@spam.example: reject"} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	text = site.Command(t, 0, "why", "b@spam.example")
	if !strings.Contains(text, "gate       mx2\n") {
		t.Error(text)
	}
	if text := two.Command(t, 0, "why", id); strings.Contains(text, "Asked the fleet") {
		t.Errorf("the fleet is asked for an id that this gate knows:\n%s", text)
	}
	if text := site.Command(t, 0, "why", id, "--json"); !strings.Contains(text, `"gate": "mx2"`) || !strings.Contains(text, `"gates": [`) {
		t.Error(text)
	}
	fails := func(args ...string) (string, int) {
		cmd := exec.Command(harness.Binary(t), append([]string{"why"}, args...)...)
		cmd.Dir = site.Dir
		out, errs, code := harness.Run(t, cmd)
		return out + errs, code
	}
	if text, code := fails(id, "--here"); code == 0 || strings.Contains(text, "mx2") {
		t.Errorf("exit code %d:\n%s", code, text)
	}
	two.Kill()
	<-two.Exited
	two.Ended = true
	if text, code := fails(id); code != 2 || !strings.Contains(text, "NO ANSWER from mx2") {
		t.Errorf("exit code %d:\n%s", code, text)
	}
}
