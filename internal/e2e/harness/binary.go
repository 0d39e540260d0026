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

// build builds spamgate, with the race detector if [RaceEnabled].
var build = sync.OnceValues(func() (string, error) { return buildProgram("spamgate", "spamgate/cmd/spamgate", RaceEnabled()) })

// BinaryOf returns the path of the spamgate program as another version.
func BinaryOf(t testing.TB, version string) string {
	t.Helper()
	path, err := buildProgram("spamgate-"+version, "spamgate/cmd/spamgate", RaceEnabled(), "-ldflags=-X spamgate/internal/version.Number="+version)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// buildFleetd builds spamgate-fleetd.
var buildFleetd = sync.OnceValues(func() (string, error) { return buildProgram("spamgate-fleetd", "spamgate/cmd/fleetd", RaceEnabled()) })

// buildNATS builds the NATS server.
var buildNATS = sync.OnceValues(func() (string, error) {
	return buildProgram("nats-server", "github.com/nats-io/nats-server/v2", false)
})

// buildProgram builds a program. "go run" keeps what it has linked in Go's build cache, so only
// the first package links, and the others copy.
func buildProgram(name, pkg string, race bool, flags ...string) (string, error) {
	unlock, err := flock("../harness", syscall.LOCK_EX)
	if err != nil {
		return "", err
	}
	defer unlock()
	bin := filepath.Join(buildDir, name)
	args := []string{"run", "-buildvcs=false", fmt.Sprintf(`-exec=sh -c 'exec cp "$0" "%s"'`, bin)}
	if race {
		args = append(args, "-race")
	}
	args = append(args, flags...)
	cmd := exec.Command("go", append(args, pkg)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return bin, nil
}

// Binary returns the path of the spamgate program.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// FleetdBinary returns the path of the program spamgate-fleetd.
func FleetdBinary(t testing.TB) string {
	t.Helper()
	path, err := buildFleetd()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
