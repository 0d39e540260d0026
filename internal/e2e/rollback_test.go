package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestEditNotTaken: whoever edits a list is told that the gate does not take it as
// it is now, and why. Here that is another file of the list, which has grown.
func TestEditNotTaken(t *testing.T) {
	t.Parallel()
	g := startGate(t, setup{
		files: map[string]string{"blocked.txt": "spam.example\n", "other.txt": "other.example\n"},
		lists: "[[list]]\nname = \"blocked\"\npath = \"*.txt\"\nmax_bytes = 50\n",
	})
	const notLive = "not live, since the running gate does not take the list as it is now: "
	writeFile(t, filepath.Join(g.dir, "other.txt"), numbered(10))
	text := g.lists(t, 0, "add", "new.example", "--reason", "test", "--file", "blocked.txt")
	if !strings.Contains(text, notLive) || !strings.Contains(text, "other.txt: too big: ") {
		t.Errorf("add says %q", text)
	}
	writeFile(t, filepath.Join(g.dir, "other.txt"), "other.example\n")
	if text = g.lists(t, 0, "remove", "new.example"); !strings.Contains(text, "live in the running gate") {
		t.Errorf("remove says %q", text)
	}
}

// TestRollbackOfMissing puts a list back whose file was deleted.
func TestRollbackOfMissing(t *testing.T) {
	t.Parallel()
	g := startGate(t, setup{files: map[string]string{"blocked.txt": numbered(1500)}})
	path := filepath.Join(g.dir, "blocked.txt")
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(lateLimit); !strings.Contains(g.lists(t, 0, "rollback", "blocked", "--list-versions", "--json"), `"version"`); <-tick.C {
		if time.Now().After(late) {
			t.Fatal("no version is kept")
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	g.waitRecord("list held, its last good version serves", "list", "blocked")
	for _, args := range [][]string{{"add", "new.example", "--reason", "test", "--list", "blocked"}, {"remove", "w1.example", "--list", "blocked"}} {
		if text := g.lists(t, 2, args...); !strings.Contains(text, "spamgate lists rollback blocked puts the last version back") || strings.Contains(text, "touch") {
			t.Errorf("%q says %q", args, text)
		}
	}
	if text := g.lists(t, 0, "status", "blocked", "--json"); !strings.Contains(text, "spamgate lists rollback blocked puts the last one back") {
		t.Errorf("its status is %q", text)
	}
	if text := g.lists(t, 0, "rollback", "blocked"); !strings.Contains(text, "with 1,500 entries") {
		t.Errorf("rollback says %q", text)
	}
	if now, err := os.ReadFile(path); string(now) != numbered(1500) {
		t.Errorf("the file is not what it was: %d bytes, %v", len(now), err)
	}
	if s := g.status(t, "blocked"); s.Lists[0].LastGood || s.Lists[0].Entries != 1500 {
		t.Errorf("then its status is %+v", s.Lists[0])
	}
}
