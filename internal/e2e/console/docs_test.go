package console

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// page is the page of the docs about the console.
var page = filepath.Join("..", "..", "..", "docs", "console.md")

// A block is a fenced block of the page.
type block struct{ language, text string }

// blocks returns the blocks of a section of the page.
func blocks(t testing.TB, heading string) (all []block) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", page, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for i, part := range strings.Split(section, "\n```") {
		if language, text, _ := strings.Cut(part, "\n"); i%2 == 1 {
			all = append(all, block{language, text})
		}
	}
	return all
}

// TestDocsAPI runs the examples of the API in their order. Each answer has at least what the
// page shows of it.
func TestDocsAPI(t *testing.T) {
	t.Parallel()
	harness.Program(t, "curl", "curl")
	s := startSite(t, harness.Setup{})
	id := s.refuse(t, bob, ann, "blocked-file", "unsolicited mail")
	env := append(os.Environ(), "CONSOLE="+s.url, "ID="+id, "TOKEN="+s.AddToken("docs", "helpdesk"), "PATH="+filepath.Dir(harness.Binary(t))+":"+os.Getenv("PATH"))
	var answer []byte
	examples := blocks(t, "The API")
	if len(examples) < 5 {
		t.Fatalf("only %d examples", len(examples))
	}
	for _, b := range examples {
		switch b.language {
		case "sh":
			cmd := exec.Command("sh", "-ec", b.text)
			cmd.Dir, cmd.Env, cmd.Stderr = s.Dir, env, os.Stderr
			var err error
			if answer, err = cmd.Output(); err != nil {
				t.Fatalf("%s\n%v\n%s", b.text, err, answer)
			}
		case "json":
			var shown, got any
			if err := json.Unmarshal([]byte(b.text), &shown); err != nil {
				t.Errorf("%v in\n%s", err, b.text)
			}
			if err := json.Unmarshal(answer, &got); err != nil {
				t.Errorf("%v in the answer\n%s", err, answer)
			}
			wantShape(t, "the answer", shown, got)
		}
	}
}

// wantShape fails the test unless got has the members of the shown value, with its strings where
// they cannot differ from run to run.
func wantShape(t testing.TB, place string, shown, got any) {
	t.Helper()
	switch shown := shown.(type) {
	case object:
		members, _ := got.(object)
		for name, v := range shown {
			if _, ok := members[name]; !ok {
				t.Errorf("%s has no %s, which the page shows", place, name)
				continue
			}
			wantShape(t, place+"."+name, v, members[name])
		}
	case []any:
		elements, _ := got.([]any)
		if len(elements) != len(shown) {
			t.Errorf("%s has %d elements, the page shows %d", place, len(elements), len(shown))
			return
		}
		for i := range shown {
			wantShape(t, place, shown[i], elements[i])
		}
	case string:
		if name := place[strings.LastIndexByte(place, '.')+1:]; name == "sender" || name == "event" || name == "what" || name == "list" || name == "entry" || name == "reason" {
			if shown != got {
				t.Errorf("%s is %q, the page shows %q", place, got, shown)
			}
		}
	}
}
