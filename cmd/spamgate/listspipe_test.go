//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/cli"
)

// A list that is a named pipe is no list to any command, as it is none to a gate:
// none waits for somebody to write into it.
func TestListIsPipe(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config.toml")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("config.toml", "[[list]]\nname = \"piped\"\npath = \"pipe\"\nformat = \"auto\"\n[[list]]\nname = \"own\"\npath = \"own.txt\"\n")
	write("own.txt", "spam.example\n")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Skip("no named pipe can be made:", err)
	}
	const wrong = "not a regular file but a named pipe"
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"find", "spam.example"}, cli.ExitError, "left out: list piped: open "},
		{[]string{"remove", "spam.example", "--dry-run"}, cli.ExitOK, wrong},
		{[]string{"remove", "spam.example", "--list", "piped"}, cli.ExitError, "which is read and never written"},
		{[]string{"add", "new.example", "--reason", "r", "--dry-run"}, cli.ExitOK, wrong},
		{[]string{"export", "--list", "piped", "--format", "plain"}, cli.ExitError, wrong},
		{[]string{"lint", "--list", "piped"}, cli.ExitError, wrong},
		{[]string{"compare"}, cli.ExitError, wrong},
		{[]string{"rollback", "piped"}, cli.ExitError, wrong},
		{[]string{"accept", "piped"}, cli.ExitError, wrong},
		{[]string{"status", "piped"}, cli.ExitOK, "named pipe"},
	} {
		var out bytes.Buffer
		code := run(t.Context(), append(append([]string{"lists"}, test.args...), "--config", config), nil, &out, &out)
		if text := strings.Join(strings.Fields(out.String()), " "); code != test.code || !strings.Contains(text, test.want) {
			t.Errorf("lists %s: exit code %d, want %d with %q\n%s", strings.Join(test.args, " "), code, test.code, test.want, out.String())
		}
	}
}
