package fleet

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"spamgate/internal/admin"
	"spamgate/internal/fleet"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// statusOf returns the status of a fleet, as its first member sees it.
func statusOf(members []fleet.Presence) *admin.Fleet {
	f := &admin.Fleet{State: admin.FleetConnected, Members: members, Problems: fleet.Problems(members), Notes: fleet.Notes(members)}
	f.Name, f.Server, f.Lists = members[0].Name, "tls://192.0.2.1:4222", members[0].Lists
	return f
}

// printed returns a status as text, and wants no line to be wider than the terminal.
func printed(t *testing.T, f *admin.Fleet, width int, all bool) string {
	t.Helper()
	var out bytes.Buffer
	printStatus(&out, f, now, width, all)
	for line := range strings.Lines(out.String()) {
		if len(line) > width+1 {
			t.Errorf("a line of %d columns, of %d: %s", len(line)-1, width, line)
		}
	}
	return out.String()
}

func wantText(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
}

// TestPrintStatus prints a fleet in which much is wrong at two widths.
func TestPrintStatus(t *testing.T) {
	sum := strings.Repeat("0123456789abcdef", 4)
	lists := func(sequence uint64, failed string) []fleet.ListStatus {
		return []fleet.ListStatus{{Name: "blocked", Sequence: 12345, SHA256: sum}, {Name: "published", Sequence: sequence, SHA256: sum, Error: failed, Fetches: sequence == 7}}
	}
	report := fmt.Appendf(nil, `{"started":%q}`, now.Add(-50*time.Hour).Format(time.RFC3339))
	members := []fleet.Presence{
		{Name: "mx1.example.net", Version: "0.9.0-12-g0123456789ab", Seen: now.Add(-3 * time.Second), Lists: lists(7, ""), Report: report},
		{Name: "mx2.example.net", Version: "0.9.0", Seen: now.Add(-40 * time.Second), Clock: -95 * time.Second, Lists: lists(4, ""), Report: report},
		{Name: "mx3.example.net", Version: "0.9.0", Seen: now, Lists: lists(3, "no space left on device: free some space"), ReadOnly: true},
	}
	for _, width := range []int{80, 100} {
		wantText(t, printed(t, statusOf(members), width, false),
			"mx1.example.net is connected to tls://192.0.2.1:4222",
			"2 lists, none behind", "published behind by 3", "published behind by 4", " 2 d ", " 12,345 ", " 0123456789ab ",
			"PROBLEM: mx2.example.net: its clock is 1m35s behind the servers' clock: let an NTP client set it",
			"PROBLEM: mx3.example.net: list published: no space left on device",
			"NOTE: the members run different versions: 0.9.0 (mx2.example.net, mx3.example.net), 0.9.0-12-g0123456789ab (mx1.example.net): upgrade the older ones",
			"NOTE: credentials that only permit reading: mx3.example.net: edits are refused there",
		)
	}
}

// TestPrintManyMembers prints a fleet of 200: those with whom something is wrong, and how many
// others there are.
func TestPrintManyMembers(t *testing.T) {
	var members []fleet.Presence
	for i := range 200 {
		members = append(members, fleet.Presence{Name: fmt.Sprintf("mx%03d", i), Version: "1.0.0", Seen: now, Lists: []fleet.ListStatus{{Name: "blocked", Sequence: 7}}})
	}
	text := printed(t, statusOf(members), 80, false)
	if wantText(t, text, "200 members, all well: --all shows all"); strings.Contains(text, "mx050") {
		t.Error(text)
	}
	members[150].Lists[0].Sequence = 5
	members[199].Clock = time.Hour
	text = printed(t, statusOf(members), 80, false)
	if wantText(t, text, "mx150", "mx199", "and 198 more members, all well: --all shows all"); strings.Contains(text, "mx050") {
		t.Error(text)
	}
	for i := range 100 {
		members[i].Clock = time.Hour
	}
	text = printed(t, statusOf(members), 80, false)
	wantText(t, text, "and 180 more members of 200, with 82 of whom something is wrong: --all shows all", "and 81 more problems: --all shows them")
	if n := strings.Count(text, "\n"); n > 80 {
		t.Errorf("%d lines", n)
	}
	if text = printed(t, statusOf(members), 80, true); strings.Count(text, "\n") < 300 {
		t.Errorf("not all is shown:\n%s", text)
	}
}
