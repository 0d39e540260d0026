package lists

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestChangeOfHeld checks that a held update does not go live because somebody adds a
// line to it, and that a list that was emptied does not become a list of one entry.
func TestChangeOfHeld(t *testing.T) {
	t.Parallel()
	g := harness.StartGate(t, harness.Setup{Files: map[string]string{"blocked.txt": harness.NumberedList(1500)}})
	list := filepath.Join(g.Dir, "blocked.txt")
	add := func(code int, entry string) string {
		t.Helper()
		return strings.Join(strings.Fields(g.Lists(t, code, "add", entry, "--list", "blocked", "--reason", "r")), " ")
	}
	change := func(serve int) {
		t.Helper()
		harness.WriteFile(t, list, harness.NumberedList(100))
		if text := add(0, "one.example"); !strings.Contains(text, fmt.Sprintf("shrunk too much: from %d entries to ", serve)) {
			t.Errorf("add says %q", text)
		}
		if text, err := os.ReadFile(list); err != nil || string(text) != harness.NumberedList(100)+"one.example  # r\n" {
			t.Errorf("the file has %d bytes, %v", len(text), err)
		}
		harness.WriteFile(t, list, "")
		if text := add(2, "two.example"); !strings.Contains(text, "blocked.txt is not changed: it is empty, and the list had entries before: spamgate lists rollback blocked puts them back") {
			t.Errorf("add says %q", text)
		}
		if text, err := os.ReadFile(list); err != nil || len(text) != 0 {
			t.Errorf("the file has %q, %v", text, err)
		}
	}
	change(1500)
	harness.WaitVerdict(t, g.Addr, "x@w1000.example", "550")
	harness.WaitVerdict(t, g.Addr, "x@one.example", "250")

	// The version that serves may be changed by any amount.
	harness.WriteFile(t, list, harness.NumberedList(1500))
	var entries []string
	for n := range 400 {
		entries = append(entries, fmt.Sprintf("w%d.example", 1000+n))
	}
	if text := g.Lists(t, 0, append([]string{"remove", "--list", "blocked"}, entries...)...); !strings.Contains(text, "live in the running gate") {
		t.Errorf("remove says %q", text)
	}
	harness.WaitVerdict(t, g.Addr, "x@w1000.example", "250")
	harness.WaitVerdict(t, g.Addr, "x@w1450.example", "550")

	g.Stop()
	change(1100)
}
