package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/cli"
)

// Who is to type a list, or waits for a program that is to send one, can end that
// at once; nothing is changed then.
func TestStandardInputIsInterrupted(t *testing.T) {
	dir := t.TempDir()
	config, list := filepath.Join(dir, "config.toml"), filepath.Join(dir, "own.txt")
	if err := os.WriteFile(config, []byte("[[list]]\nname = \"own\"\npath = \"own.txt\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const before = "spam.example\n"
	if err := os.WriteFile(list, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"lists", "lint", "-"},
		{"lists", "diff", list, "-"},
		{"lists", "test", list, "--against", "-"},
		{"lists", "import", "-", "--config", config},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		in := &typist{begun: interrupt, end: make(chan struct{})}
		var out bytes.Buffer
		if code := run(ctx, args, in, &out, &out); code != cli.ExitError || !strings.Contains(out.String(), context.Canceled.Error()) {
			t.Errorf("%s: exit code %d\n%s", strings.Join(args, " "), code, out.String())
		}
		close(in.end)
	}
	if after, err := os.ReadFile(list); err != nil || string(after) != before {
		t.Errorf("the list is %q, %v", after, err)
	}
}

// typist is standard input of which nothing comes before its end.
type typist struct {
	begun func() // called when somebody waits for it
	end   chan struct{}
}

func (s *typist) Read([]byte) (int, error) {
	s.begun()
	<-s.end
	return 0, io.EOF
}
