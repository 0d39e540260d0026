package harness

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// buildDir is the directory that holds the program while the tests of a package run.
var buildDir string

// build builds spamgate, with the race detector if [RaceEnabled]. "go run" keeps
// what it has linked in Go's build cache, so only the first package links, and the
// others copy.
var build = sync.OnceValues(func() (string, error) {
	unlock, err := flock("../harness", syscall.LOCK_EX)
	if err != nil {
		return "", err
	}
	defer unlock()
	bin := filepath.Join(buildDir, "spamgate")
	args := []string{"run", "-buildvcs=false", fmt.Sprintf(`-exec=sh -c 'exec cp "$0" "%s"'`, bin)}
	if RaceEnabled() {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "spamgate/cmd/spamgate")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return bin, nil
})

// Binary returns the path of the spamgate program.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
