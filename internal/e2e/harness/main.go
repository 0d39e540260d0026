package harness

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
)

// parallel is how many tests of a package run at a time unless -parallel says it. They wait for
// servers more than they compute, and go test runs a few packages at the same time.
const parallel = 4

// Main runs the tests of a package, beside those of others.
func Main(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		flag.Set("test.parallel", strconv.Itoa(parallel))
	}
	var err error
	if buildDir, err = os.MkdirTemp("", "spamgate-e2e-"); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer os.RemoveAll(buildDir)
	return m.Run()
}

// flock locks a file or directory against the other test processes of this checkout:
// the working directory of a test is its package's. The lock ends with the process at
// the latest.
func flock(path string, how int) (unlock func(), err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	for {
		if err = syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}
