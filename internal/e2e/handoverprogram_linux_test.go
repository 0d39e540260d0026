package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
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
			copyFile(t, binary(t), program)
		}, func(t *testing.T, dir, program string) {
			rename(t, filepath.Join(dir, "new"), program)
		}},
		{"symbolic link", func(t *testing.T, dir, program string) {
			copyFile(t, binary(t), filepath.Join(dir, "old"))
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
			g := startReaped(t, setup{}, program)
			copyFile(t, binary(t), filepath.Join(dir, "new"))
			c.replace(t, dir, program)
			if sameFiles(t, runningFile(g), program) {
				t.Error("the file was not replaced")
			}
			g.handOver()
			if !sameFiles(t, runningFile(g), program) {
				t.Error("the successor is not the new program")
			}
			g.stop()
			g.wantEnded(2)
		})
	}
}

// runningFile is the file that the gate's process runs, wherever its name is.
func runningFile(g *succession) string { return fmt.Sprintf("/proc/%d/exe", g.process.Pid) }

func sameFiles(t testing.TB, a, b string) bool {
	t.Helper()
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	if errX != nil || errY != nil {
		t.Fatal(errX, errY)
	}
	return os.SameFile(x, y)
}

// copyFile copies a program. Another process writes it: one that this test starts
// meanwhile would hold the copy open for writing, and it could not be run.
func copyFile(t testing.TB, from, to string) {
	t.Helper()
	if _, errs, code := run(t, exec.Command(tool(t, "cp", "coreutils"), from, to)); code != 0 {
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
