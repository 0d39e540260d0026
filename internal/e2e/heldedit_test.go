package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestChangeOfHeld: an update that is held does not go live because somebody adds
// a line to it, and a list that was emptied does not become one of a single entry.
func TestChangeOfHeld(t *testing.T) {
	t.Parallel()
	g := startGate(t, setup{files: map[string]string{"blocked.txt": numbered(1500)}})
	list := filepath.Join(g.dir, "blocked.txt")
	add := func(code int, entry string) string {
		t.Helper()
		return strings.Join(strings.Fields(g.lists(t, code, "add", entry, "--list", "blocked", "--reason", "r")), " ")
	}
	change := func(serve int) {
		t.Helper()
		writeFile(t, list, numbered(100))
		if text := add(0, "one.example"); !strings.Contains(text, fmt.Sprintf("shrunk too much: from %d entries to ", serve)) {
			t.Errorf("add says %q", text)
		}
		if text, err := os.ReadFile(list); err != nil || string(text) != numbered(100)+"one.example  # r\n" {
			t.Errorf("the file has %d bytes, %v", len(text), err)
		}
		writeFile(t, list, "")
		if text := add(2, "two.example"); !strings.Contains(text, "blocked.txt is not changed: it is empty, and the list had entries before: spamgate lists rollback blocked puts them back") {
			t.Errorf("add says %q", text)
		}
		if text, err := os.ReadFile(list); err != nil || len(text) != 0 {
			t.Errorf("the file has %q, %v", text, err)
		}
	}
	change(1500)
	waitVerdict(t, g.addr, "x@w1000.example", "550")
	waitVerdict(t, g.addr, "x@one.example", "250")

	// What serves can be changed by as much as anybody likes.
	writeFile(t, list, numbered(1500))
	var entries []string
	for n := range 400 {
		entries = append(entries, fmt.Sprintf("w%d.example", 1000+n))
	}
	if text := g.lists(t, 0, append([]string{"remove", "--list", "blocked"}, entries...)...); !strings.Contains(text, "live in the running gate") {
		t.Errorf("remove says %q", text)
	}
	waitVerdict(t, g.addr, "x@w1000.example", "250")
	waitVerdict(t, g.addr, "x@w1450.example", "550")

	g.stop()
	change(1100)
}
