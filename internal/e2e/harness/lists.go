package harness

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Lists runs "spamgate lists" in the gate's directory, checks its exit code and returns
// its output.
func (g *Gate) Lists(t testing.TB, want int, args ...string) string {
	t.Helper()
	return g.Command(t, want, append([]string{"lists"}, args...)...)
}

// Command runs spamgate in the gate's directory, checks its exit code and returns its
// output.
func (g *Gate) Command(t testing.TB, want int, args ...string) string {
	t.Helper()
	cmd := exec.Command(Binary(t), args...)
	cmd.Dir = g.Dir
	stdout, stderr, code := Run(t, cmd)
	if code != want {
		t.Fatalf("%s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, stdout, stderr)
	}
	return stdout + stderr
}

// ListState is the output of "lists status --json" for one list.
type ListState struct {
	From       string
	PID        int
	Generation int
	Lists      []struct {
		Name      string
		Entries   int
		Held      bool
		LastGood  bool `json:"last_good"`
		HitsToday *int `json:"hits_today"`
	}
}

// Status returns the output of "lists status --json" for one list.
func (g *Gate) Status(t testing.TB, list string) ListState {
	t.Helper()
	var s ListState
	if err := json.Unmarshal([]byte(g.Lists(t, 0, "status", list, "--json")), &s); err != nil || len(s.Lists) != 1 {
		t.Fatalf("status: %+v, %v", s, err)
	}
	return s
}

// Today returns the day for which a gate counts now.
func Today() string { return time.Now().UTC().Format(time.DateOnly) }

// SkipAfter skips the rest of a test if the day that it is about has ended.
func SkipAfter(t testing.TB, day string) {
	t.Helper()
	if Today() != day {
		t.Skip("midnight has passed")
	}
}

// NumberedList returns a list with n entries.
func NumberedList(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "w%d.example  # number %d\n", i, i)
	}
	return b.String()
}

// RewriteLists are the tables of the lists blocked, which rejects, and tagged.
const RewriteLists = `
[[list]]
name = "blocked"
path = "lists/blocked.txt"
[[list]]
name = "tagged"
path = "lists/tagged.txt"
action = "tag"
`

// MilderLists are the tables of the lists that do not reject: later, dropped and marked.
const MilderLists = `
[[list]]
name = "later"
path = "later.txt"
action = "defer"
[[list]]
name = "dropped"
path = "dropped.txt"
action = "discard"
[[list]]
name = "marked"
path = "marked.txt"
action = "tag"
`

// VersionText returns a version of a list. The reasons of its first and last entry name
// the version, so a list that is cut short lacks the last one.
func VersionText(name string, version int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "first.%s.example  # first of version %d\n", name, version)
	for i := range 1500 {
		fmt.Fprintf(&b, "filler-%d-%d.example\n", i, version)
	}
	fmt.Fprintf(&b, "last.%s.example  # last of version %d\n", name, version)
	return b.String()
}
