package verdict_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"spamgate/blocklist/verdict"
)

var loggedText = regexp.MustCompile(`(?:\bEvent(?:: | = )|logAlike\()"([^"]+)"`)

// TestEvents: each text that the doors log about a message is an event, and each once.
func TestEvents(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range verdict.Events {
		if seen[e.Text] || verdict.EventOf(e.Text) != e {
			t.Errorf("%q twice", e.Text)
		}
		seen[e.Text] = true
	}
	found := 0
	for _, dir := range []string{"../../smtpfilter", "../../internal/door"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range loggedText.FindAllSubmatch(code, -1) {
				found++
				if text := string(m[1]); !seen[text] {
					t.Errorf("%s logs %q, which is not an event", file, text)
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("%d texts: is logging still called as this test reads it?", found)
	}
	if e := verdict.EventOf("of another version"); e.Text != "of another version" || e.Note || e.Plain || e.Delivered || e.Class != "" {
		t.Errorf("unknown: %+v", e)
	}
}
