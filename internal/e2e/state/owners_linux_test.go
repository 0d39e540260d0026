package state

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestStateShared has state directories that others than the gate's user can change.
// They are refused before anything is read or written there, and the error says what to
// do. If a group may write, there is a warning.
func TestStateShared(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, want string
		mode       os.FileMode
		owner      int // 0: the test's user
		commands   bool
	}{
		{"everybody", "chmod 700", 0o777, 0, true},
		{"everybody, sticky", "chmod 700", 0o777 | os.ModeSticky, 0, true},
		{"another user", "chown -R", 0o700, gateUser, false},
	} {
		if tt.owner != 0 && os.Geteuid() != 0 {
			continue
		}
		dir := t.TempDir()
		state := filepath.Join(dir, "state")
		harness.WriteFile(t, filepath.Join(dir, "config.toml"), harness.Setup{Tables: "[state]\ndir = \"state\"\n"}.Config())
		harness.WriteFile(t, filepath.Join(dir, "blocked.txt"), "spam.example\n")
		harness.WriteFile(t, filepath.Join(state, "audit.log"), "")
		if err := os.Chmod(state, tt.mode); err != nil {
			t.Fatal(err)
		}
		if tt.owner != 0 {
			if err := os.Chown(state, tt.owner, tt.owner); err != nil {
				t.Fatal(err)
			}
		}
		g := harness.Launch(t, dir, exec.Command(harness.Binary(t), "serve"))
		if code := g.Wait(); code != 2 || !strings.Contains(g.Log.String(), tt.want) || !strings.Contains(g.Log.String(), "[state] dir") {
			t.Errorf("%s: serve: exit code %d\n%s", tt.name, code, g.Log)
		}
		for _, args := range [][]string{
			{"config", "check"}, {"check", "x@spam.example"}, {"lists", "status"}, {"lists", "accept", "blocked"},
			{"lists", "add", "more.example", "--reason", "a test"}, {"lists", "rollback", "blocked"},
		} {
			cmd := exec.Command(harness.Binary(t), args...)
			cmd.Dir = dir
			out, errs, code := harness.Run(t, cmd)
			if refused := strings.Contains(errs, tt.want); refused != tt.commands || tt.commands && code != 2 {
				t.Errorf("%s: %v: exit code %d\n%s%s", tt.name, args, code, out, errs)
			}
		}
		if text, err := os.ReadFile(filepath.Join(dir, "blocked.txt")); tt.commands && (err != nil || string(text) != "spam.example\n") {
			t.Errorf("%s: the list is %q, %v", tt.name, text, err)
		}
	}

	dir := harness.Setup{Tables: "[state]\ndir = \"state\"\n"}.Dir(t)
	state := filepath.Join(dir, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(state, 0o770); err != nil {
		t.Fatal(err)
	}
	g := harness.Serve(t, dir)
	if record := g.WaitRecord("others may write to the state directory"); !strings.Contains(record.Text("problem"), "chmod g-w") {
		t.Errorf("the log says %v", record)
	}
	g.Stop()
}
