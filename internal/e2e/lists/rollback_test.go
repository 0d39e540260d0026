package lists

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestHeldAcceptRollback accepts a held update and rolls the list back.
func TestHeldAcceptRollback(t *testing.T) {
	t.Parallel()
	g := harness.StartGate(t, harness.Setup{Files: map[string]string{"blocked.txt": harness.NumberedList(1500)}})
	waitVersions := func(n int) {
		t.Helper()
		harness.WaitFor(t, fmt.Sprintf("%d versions to be kept in the background", n), func() bool {
			return strings.Count(g.Lists(t, 0, "rollback", "blocked", "--list-versions", "--json"), `"version"`) == n
		})
	}
	waitVersions(1)
	g.Lists(t, 2, "accept", "blocked") // nothing is held
	g.Lists(t, 2, "rollback", "blocked")

	harness.WriteFile(t, filepath.Join(g.Dir, "blocked.txt"), harness.NumberedList(100))
	g.WaitRecord("list held, its last good version serves", "list", "blocked")
	if s := g.Status(t, "blocked"); !s.Lists[0].Held || !s.Lists[0].LastGood || s.Lists[0].Entries != 1500 {
		t.Errorf("status %+v, want it held", s)
	}
	if text := g.Lists(t, 1, "diff", "blocked"); !strings.Contains(text, "0 came, 1400 went, 0 changed, 100 are the same") {
		t.Errorf("diff says %q", text)
	}
	if text := g.Lists(t, 0, "accept", "blocked", "--dry-run"); !strings.Contains(text, "blocked: would be accepted, 100 entries; 1,500 before") || !strings.Contains(text, "shrunk too much") || strings.Contains(text, "if that is right") {
		t.Errorf("a dry run says %q", text)
	}
	harness.WaitVerdict(t, g.Addr, "x@w1000.example", "550")

	text := g.Lists(t, 0, "accept", "blocked", "--reason", "cleaned up")
	if !strings.Contains(text, "blocked: accepted, 100 entries; 1,500 before") || !strings.Contains(text, "live in the running gate, generation 2") {
		t.Errorf("accept says %q", text)
	}
	harness.WaitVerdict(t, g.Addr, "x@w1000.example", "250")
	waitVersions(2)

	text = g.Lists(t, 0, "rollback", "blocked", "--reason", "that was wrong")
	for _, want := range []string{"list blocked: put back version 2", "with 1,500 entries, live since 2", "  replaced version 2", "to go further back: --to VERSION", "puts back 2", "live in the running gate, generation 3"} {
		if !strings.Contains(text, want) {
			t.Errorf("rollback says %q, want %q", text, want)
		}
	}
	harness.WaitVerdict(t, g.Addr, "x@w1000.example", "550")
	if current, err := os.ReadFile(filepath.Join(g.Dir, "blocked.txt")); string(current) != harness.NumberedList(1500) {
		t.Errorf("the file is not what it was: %d bytes, %v", len(current), err)
	}
	audit, err := os.ReadFile(filepath.Join(g.Dir, "state", "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"command":"accept"`, `100 entries; 1,500 before`, `"why":"cleaned up"`, `"command":"rollback"`, `"why":"that was wrong"`, fmt.Sprintf(`"uid":%d`, os.Getuid())} {
		if !strings.Contains(string(audit), want) {
			t.Errorf("the audit log lacks %s:\n%s", want, audit)
		}
	}
	g.Stop()

	// Without a gate. A much smaller version has to be named.
	g.Lists(t, 2, "rollback", "blocked")
	var versions []struct {
		Version string
		Entries int
	}
	if err := json.Unmarshal([]byte(g.Lists(t, 0, "rollback", "blocked", "--list-versions", "--json")), &versions); err != nil || len(versions) < 2 {
		t.Fatalf("versions %v, %v", versions, err)
	}
	i := slices.IndexFunc(versions, func(v struct {
		Version string
		Entries int
	}) bool {
		return v.Entries == 100
	})
	if i < 0 {
		t.Fatalf("versions %v, want one of 100 entries", versions)
	}
	if text := g.Lists(t, 1, "diff", "blocked", "--from", versions[i].Version); !strings.Contains(text, "1400 came, 0 went, 0 changed, 100 are the same") {
		t.Errorf("diff --from says %q", text)
	}
	text = g.Lists(t, 0, "rollback", "blocked", "--to", versions[i].Version)
	if !strings.Contains(text, "with 100 entries") || !strings.Contains(text, "no gate is running") {
		t.Errorf("rollback without a gate says %q", text)
	}
	if s := g.Status(t, "blocked"); s.Lists[0].Held || s.Lists[0].Entries != 100 {
		t.Errorf("then its status is %+v", s)
	}
}

// TestEditNotTaken checks that who edits a list learns that the gate does not take it
// now, and why: another file of the list has become too big.
func TestEditNotTaken(t *testing.T) {
	t.Parallel()
	g := harness.StartGate(t, harness.Setup{
		Files: map[string]string{"blocked.txt": "spam.example\n", "other.txt": "other.example\n"},
		Lists: "[[list]]\nname = \"blocked\"\npath = \"*.txt\"\nmax_bytes = 50\n",
	})
	const notLive = "not live, since the running gate does not take the list as it is now: "
	harness.WriteFile(t, filepath.Join(g.Dir, "other.txt"), harness.NumberedList(10))
	text := g.Lists(t, 0, "add", "new.example", "--reason", "test", "--file", "blocked.txt")
	if !strings.Contains(text, notLive) || !strings.Contains(text, "other.txt: too big: ") {
		t.Errorf("add says %q", text)
	}
	harness.WriteFile(t, filepath.Join(g.Dir, "other.txt"), "other.example\n")
	if text = g.Lists(t, 0, "remove", "new.example"); !strings.Contains(text, "live in the running gate") {
		t.Errorf("remove says %q", text)
	}
}

// TestRollbackOfMissing rolls back a list whose file was deleted.
func TestRollbackOfMissing(t *testing.T) {
	t.Parallel()
	g := harness.StartGate(t, harness.Setup{Files: map[string]string{"blocked.txt": harness.NumberedList(1500)}})
	path := filepath.Join(g.Dir, "blocked.txt")
	harness.WaitFor(t, "a version to be kept", func() bool {
		return strings.Contains(g.Lists(t, 0, "rollback", "blocked", "--list-versions", "--json"), `"version"`)
	})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	g.WaitRecord("list held, its last good version serves", "list", "blocked")
	for _, args := range [][]string{{"add", "new.example", "--reason", "test", "--list", "blocked"}, {"remove", "w1.example", "--list", "blocked"}} {
		if text := g.Lists(t, 2, args...); !strings.Contains(text, "spamgate lists rollback blocked puts the last version back") || strings.Contains(text, "touch") {
			t.Errorf("%q says %q", args, text)
		}
	}
	if text := g.Lists(t, 0, "status", "blocked", "--json"); !strings.Contains(text, "spamgate lists rollback blocked puts the last one back") {
		t.Errorf("its status is %q", text)
	}
	if text := g.Lists(t, 0, "rollback", "blocked"); !strings.Contains(text, "with 1,500 entries") {
		t.Errorf("rollback says %q", text)
	}
	if current, err := os.ReadFile(path); string(current) != harness.NumberedList(1500) {
		t.Errorf("the file is not what it was: %d bytes, %v", len(current), err)
	}
	if s := g.Status(t, "blocked"); s.Lists[0].LastGood || s.Lists[0].Entries != 1500 {
		t.Errorf("then its status is %+v", s.Lists[0])
	}
}
