package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// waitVerdict asks until the answer to RCPT begins with a text: a change of a
// list takes its time.
func waitVerdict(t testing.TB, addr, from, prefix string) string {
	t.Helper()
	c := &asker{addr: addr}
	defer c.close()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(lateLimit); ; <-tick.C {
		reply, err := c.verdict(from, "b@example.net")
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(reply, prefix) {
			return reply
		}
		if time.Now().After(late) {
			t.Fatalf("%s still gets %q, want %q", from, reply, prefix)
		}
	}
}

// TestBrokenListBesideGoodChange breaks one list in every way, each time beside
// a good change of another: that one goes live, the broken one's last good
// version serves, and the log says which list it is and why.
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
			g := startGate(t, setup{
				lists: "[[list]]\nname = \"broken\"\npath = \"broken.txt\"\n[[list]]\nname = \"good\"\npath = \"good.txt\"\n",
				files: map[string]string{"broken.txt": "old.example  # last good\n", "good.txt": "# nothing yet\n"},
			})
			path := filepath.Join(g.dir, "broken.txt")
			if err := b.do(path); err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(g.dir, "good.txt"), "new.example  # changed beside it\n")

			reply := waitVerdict(t, g.addr, "x@new.example", "550")
			wantRefusal(t, reply, "x@new.example", "good", "changed beside it")
			// It may have been held for another reason before, if it took its time to break.
			g.log.wait("broken held: "+b.why, func(line string) bool {
				r := parseRecord(line)
				return r.matches("list held, its last good version serves", []string{"list", "broken"}) &&
					strings.Contains(r.string("error"), b.why) && strings.Contains(r.string("error"), "broken.txt")
			})
			reply = waitVerdict(t, g.addr, "x@old.example", "550")
			wantRefusal(t, reply, "x@old.example", "broken", "last good")

			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			writeFile(t, path, "mended.example  # good again\n")
			waitVerdict(t, g.addr, "x@mended.example", "550")
			waitVerdict(t, g.addr, "x@old.example", "250")
			g.waitRecord("list is good again", "list", "broken")
		})
	}
}

// TestInvalidLines has lines that are no entries in a short list: they are in
// the log, with file and line, and the others go live.
func TestInvalidLines(t *testing.T) {
	t.Parallel()
	g := startGate(t, setup{})
	path := filepath.Join(g.dir, "blocked.txt")
	writeFile(t, path, "good.example\ncom\ntwo words\n  # a comment\nlast.example\n")
	waitVerdict(t, g.addr, "x@last.example", "550")
	waitVerdict(t, g.addr, "x@good.example", "550")
	waitVerdict(t, g.addr, "x@example.com", "250")
	for line, text := range map[string]string{"2": "com", "3": "two words"} {
		r := g.waitRecord("invalid line skipped", "list", "blocked", "file", path, "line", line)
		if r.string("text") != text || r.string("problem") == "" {
			t.Errorf("line %s: %v", line, r)
		}
	}
	g.waitRecord("invalid lines", "count", "2", "entries", "2")
}

// TestListNotUsableAtStart wants the start to stop where a list cannot be read,
// unless the list is optional.
func TestListNotUsableAtStart(t *testing.T) {
	t.Parallel()
	lists := "[[list]]\nname = \"missing\"\npath = \"missing.txt\"\n"
	g := launchGate(t, setup{lists: lists})
	if code := g.wait(); code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	for _, text := range []string{`list "missing"`, filepath.Join(g.dir, "missing.txt"), "optional = true"} {
		if !strings.Contains(g.log.String(), text) {
			t.Errorf("it said nothing of %s", text)
		}
	}

	g = startGate(t, setup{lists: lists + "optional = true\n"})
	waitVerdict(t, g.addr, "x@late.example", "250")
	writeFile(t, filepath.Join(g.dir, "missing.txt"), "late.example\n")
	waitVerdict(t, g.addr, "x@late.example", "550")
}
