package lists

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestBrokenListBesideGoodChange breaks one list in every way, each time together with a
// good change of another list. The good change goes live, the last good version of the
// broken list serves, and the log names the list and the reason.
func TestBrokenListBesideGoodChange(t *testing.T) {
	t.Parallel()
	long := func(invalid int) string {
		return strings.Repeat("old.example\nother.example\n", 600) + strings.Repeat("no entry\n", invalid)
	}
	put := func(text string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(text), 0o644) }
	}
	breaks := []struct {
		name string
		do   func(path string) error
		why  string // in the log
	}{
		{"emptied", func(path string) error { return os.Truncate(path, 0) }, "empty"},
		{"removed", os.Remove, "no such file"},
		{"binary", put("old.example\n\x00\x00\n"), "binary"},
		{"mostly invalid", put(long(20)), "too many invalid lines: 20 of 1220"},
		{"a directory", func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Mkdir(path, 0o755)
		}, "regular file"},
	}
	for _, b := range breaks {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			g := harness.StartGate(t, harness.Setup{
				Lists: "[[list]]\nname = \"broken\"\npath = \"broken.txt\"\n[[list]]\nname = \"good\"\npath = \"good.txt\"\n",
				Files: map[string]string{"broken.txt": "old.example  # last good\n", "good.txt": "# nothing yet\n"},
			})
			path := filepath.Join(g.Dir, "broken.txt")
			if err := b.do(path); err != nil {
				t.Fatal(err)
			}
			harness.WriteFile(t, filepath.Join(g.Dir, "good.txt"), "new.example  # changed beside it\n")

			reply := harness.WaitVerdict(t, g.Addr, "x@new.example", "550")
			harness.WantRefusal(t, reply, "x@new.example", "good", "changed beside it")
			// The gate may have held it for another reason before, while it was being broken.
			g.Log.Wait("broken held: "+b.why, func(line string) bool {
				r := harness.ParseRecord(line)
				return r.Matches("list held, its last good version serves", []string{"list", "broken"}) &&
					strings.Contains(r.Text("error"), b.why) && strings.Contains(r.Text("error"), "broken.txt")
			})
			reply = harness.WaitVerdict(t, g.Addr, "x@old.example", "550")
			harness.WantRefusal(t, reply, "x@old.example", "broken", "last good")

			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			harness.WriteFile(t, path, "mended.example  # good again\n")
			harness.WaitVerdict(t, g.Addr, "x@mended.example", "550")
			harness.WaitVerdict(t, g.Addr, "x@old.example", "250")
			g.WaitRecord("list is good again", "list", "broken")
		})
	}
}

// TestInvalidLines has invalid lines in a short list. The log has them with file and
// line, and the other lines go live.
func TestInvalidLines(t *testing.T) {
	t.Parallel()
	g := harness.StartGate(t, harness.Setup{})
	path := filepath.Join(g.Dir, "blocked.txt")
	harness.WriteFile(t, path, "good.example\ncom\ntwo words\n  # a comment\nlast.example\n")
	harness.WaitVerdict(t, g.Addr, "x@last.example", "550")
	harness.WaitVerdict(t, g.Addr, "x@good.example", "550")
	harness.WaitVerdict(t, g.Addr, "x@example.com", "250")
	for line, text := range map[string]string{"2": "com", "3": "two words"} {
		r := g.WaitRecord("invalid line skipped", "list", "blocked", "file", path, "line", line)
		if r.Text("text") != text || r.Text("problem") == "" {
			t.Errorf("line %s: %v", line, r)
		}
	}
	g.WaitRecord("invalid lines", "count", "2", "entries", "2")
}

// TestListNotUsableAtStart checks that a list that cannot be read stops the start,
// unless it is optional.
func TestListNotUsableAtStart(t *testing.T) {
	t.Parallel()
	lists := "[[list]]\nname = \"missing\"\npath = \"missing.txt\"\n"
	g := harness.LaunchGate(t, harness.Setup{Lists: lists})
	if code := g.Wait(); code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	for _, text := range []string{`list "missing"`, filepath.Join(g.Dir, "missing.txt"), "optional = true"} {
		if !strings.Contains(g.Log.String(), text) {
			t.Errorf("it said nothing of %s", text)
		}
	}

	g = harness.StartGate(t, harness.Setup{Lists: lists + "optional = true\n"})
	harness.WaitVerdict(t, g.Addr, "x@late.example", "250")
	harness.WriteFile(t, filepath.Join(g.Dir, "missing.txt"), "late.example\n")
	harness.WaitVerdict(t, g.Addr, "x@late.example", "550")
}
