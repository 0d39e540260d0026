package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/blocklist/store"
	"spamgate/internal/cli"
	"spamgate/internal/config"
	"spamgate/internal/setup"
)

// TestCheckHeld: an update that looks wrong is told about by whoever checks, and
// the version before it answers, as in the gate.
func TestCheckHeld(t *testing.T) {
	dir := t.TempDir()
	path, list := filepath.Join(dir, "config.toml"), filepath.Join(dir, "blocked.txt")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hosts := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "host%d.example\n", i)
		}
		return b.String()
	}
	write(path, "[[list]]\nname = \"blocked\"\npath = \"blocked.txt\"\n")
	write(list, hosts(2000))
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := setup.BlocklistConfig(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	store, err := store.Open(t.Context(), lists) // the gate, for a while
	if err == nil {
		err = store.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	write(list, hosts(100))
	for _, tt := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"config", "check"}, cli.ExitError, "blocked  reject, 2,000 entries, HELD\n", `blocked.txt: shrunk too much: from 2000 entries to 100, and max_shrink is 20%; if that is right, spamgate lists accept blocked takes it`},
		{[]string{"check", "x@host1500.example"}, cli.ExitListed, "x@host1500.example: reject\n", "list blocked: its last good version serves: "},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append(tt.args, "-c", path), strings.NewReader(""), &stdout, &stderr)
		if code != tt.code || !strings.Contains(stdout.String(), tt.stdout) || !strings.Contains(stderr.String(), tt.stderr) {
			t.Errorf("%q: exit code %d\n%s\n%s", tt.args, code, &stdout, &stderr)
		}
	}
}
