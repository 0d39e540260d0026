package restarts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestHandoverProgram replaces the program's file before the handover.
func TestHandoverProgram(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		install func(t *testing.T, dir, program string)
		replace func(t *testing.T, dir, program string)
	}{
		{"renamed over", func(t *testing.T, dir, program string) {
			copyFile(t, harness.Binary(t), program)
		}, func(t *testing.T, dir, program string) {
			rename(t, filepath.Join(dir, "new"), program)
		}},
		{"symbolic link", func(t *testing.T, dir, program string) {
			copyFile(t, harness.Binary(t), filepath.Join(dir, "old"))
			symlink(t, "old", program)
		}, func(t *testing.T, dir, program string) {
			symlink(t, "new", program+".new")
			rename(t, program+".new", program)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			program := filepath.Join(dir, "spamgate")
			c.install(t, dir, program)
			g := startSuccession(t, harness.Setup{}, program)
			copyFile(t, harness.Binary(t), filepath.Join(dir, "new"))
			c.replace(t, dir, program)
			if sameFiles(t, runningFile(g), program) {
				t.Error("the file was not replaced")
			}
			g.HandOver()
			if !sameFiles(t, runningFile(g), program) {
				t.Error("the successor is not the new program")
			}
			g.Stop()
			g.WantEnded(2)
		})
	}
}

// runningFile returns a path of the file that the gate's process runs, even if it has no
// name any more.
func runningFile(g *harness.Succession) string { return fmt.Sprintf("/proc/%d/exe", g.Process.Pid) }

func sameFiles(t testing.TB, a, b string) bool {
	t.Helper()
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	if errX != nil || errY != nil {
		t.Fatal(errX, errY)
	}
	return os.SameFile(x, y)
}

// copyFile copies a program. Another process writes the copy: a process that this one
// starts meanwhile would inherit the open file, and a program that is open for writing
// cannot be run.
func copyFile(t testing.TB, from, to string) {
	t.Helper()
	if _, errs, code := harness.Run(t, exec.Command(harness.Program(t, "cp", "coreutils"), from, to)); code != 0 {
		t.Fatal(errs)
	}
}

func rename(t testing.TB, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func symlink(t testing.TB, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}
