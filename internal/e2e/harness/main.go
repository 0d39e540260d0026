package harness

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
)

// How many tests of a package run at a time unless -parallel says it. They wait for
// servers more than they compute.
const (
	parallelShared = 4 // go test runs a few packages at the same time
	parallelAlone  = 6
)

// Main runs the tests of a package, beside those of the other packages of e2e.
func Main(m *testing.M) {
	os.Exit(runTests(m, syscall.LOCK_SH, parallelShared))
}

// MainAlone runs the tests of a package that measures: it waits until no other package
// of e2e runs, and the others wait for it.
func MainAlone(m *testing.M) {
	os.Exit(runTests(m, syscall.LOCK_EX, max(parallelAlone, runtime.GOMAXPROCS(0))))
}

func runTests(m *testing.M, lock, parallel int) int {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		flag.Set("test.parallel", strconv.Itoa(parallel))
	}
	unlock, err := lockTests(lock)
	if err == nil {
		defer unlock()
		buildDir, err = os.MkdirTemp("", "spamgate-e2e-")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer os.RemoveAll(buildDir)
	return m.Run()
}

// lockTests takes the lock of the tests, shared or exclusive. Processes take it one after
// the other: who waits for it exclusively is not passed by others that share it.
func lockTests(how int) (unlock func(), err error) {
	next, err := flock("../doc.go", syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer next()
	return flock("..", how)
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
