package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/cli"
)

// Ctrl-C after the list is changed leaves what is said of other lists unsaid, and
// nothing else: the entries are in the list, and gone from it.
func TestInterruptedAfterChange(t *testing.T) {
	dir := t.TempDir()
	config, list := filepath.Join(dir, "config.toml"), filepath.Join(dir, "own.txt")
	lists := "[[list]]\nname = \"own\"\npath = \"own.txt\"\n[[list]]\nname = \"gone\"\npath = \"gone.txt\"\n"
	if err := os.WriteFile(config, []byte(lists), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list, []byte("# mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		out  string
		list string
	}{
		{[]string{"lists", "add", "spam.example", "--reason", "r", "--list", "own"}, "spam.example: added to list own", "# mine\nspam.example  # r\n"},
		{[]string{"lists", "remove", "spam.example", "--list", "own"}, "spam.example: removed from list own", "# mine\n"},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		var out bytes.Buffer
		errs := &reaction{word: "left out", act: interrupt} // the other lists are looked at last
		code := run(ctx, append(test.args, "--config", config), nil, &out, errs)
		if code != cli.ExitOK || !strings.Contains(out.String(), test.out) || !strings.Contains(errs.String(), "it is changed; which other entries match the same senders is not known") {
			t.Errorf("%s: exit code %d\n%s%s", strings.Join(test.args, " "), code, out.String(), errs)
		}
		if n := strings.Count(errs.String(), "left out: list gone"); n != 1 {
			t.Errorf("%s: told %d times which list is left out", strings.Join(test.args, " "), n)
		}
		if after, err := os.ReadFile(list); err != nil || string(after) != test.list {
			t.Errorf("the list is %q, %v", after, err)
		}
		interrupt()
	}
}

// reaction is a buffer that acts when a word is written to it.
type reaction struct {
	bytes.Buffer
	word string
	act  func()
}

func (r *reaction) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(r.word)) {
		r.act()
	}
	return r.Buffer.Write(p)
}
