package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// outcome is the result of planting a bug.
type outcome string

const (
	caught       outcome = "caught"
	survived     outcome = "SURVIVED"
	doesNotApply outcome = "DOES NOT APPLY"
	doesNotBuild outcome = "DOES NOT BUILD"
	noTest       outcome = "NO TEST" // the tests fail without the bug, or there are none
)

// result is an outcome with an explanation: the test that failed first, or an error.
type result struct {
	outcome outcome
	why     string
}

// trier runs tests in a checkout.
type trier struct {
	checkout *checkout
	limit    time.Duration

	mu   sync.Mutex
	done map[string]func() (string, error) // what once did
	took map[string]time.Duration          // tests without a bug
}

// once does something once for a key, and returns its result.
func (t *trier) once(key string, do func() (string, error)) (string, error) {
	t.mu.Lock()
	if t.done[key] == nil {
		t.done[key] = sync.OnceValues(do)
	}
	do = t.done[key]
	t.mu.Unlock()
	return do()
}

// try runs the tests of a bug with a number that is planted with others.
func (t *trier) try(ctx context.Context, b *bug, number int) (result, error) {
	for _, pkg := range b.Packages {
		if err := t.checkSound(ctx, b, pkg); err != nil {
			return result{noTest, err.Error()}, ctx.Err()
		}
		out, err := t.runTests(ctx, b, pkg, number, t.patience(b, pkg))
		switch {
		case ctx.Err() != nil:
			return result{}, context.Cause(ctx)
		case err != nil:
			return result{caught, pkg + " " + whatFailed(out, err)}, nil
		}
	}
	return result{survived, b.Harm}, nil
}

// buildAll plants and compiles all bugs. It returns the indexes of those that can be switched
// on, and the results of the others.
func (t *trier) buildAll(ctx context.Context, bugs []bug) (indexes []int, failed map[int]result, err error) {
	failed = map[int]result{}
	for i := range bugs {
		if err := t.checkout.fits(&bugs[i]); err != nil {
			failed[i] = result{doesNotApply, err.Error()}
		} else {
			indexes = append(indexes, i)
		}
	}
	for {
		bugOf, err := t.checkout.plant(bugs, indexes, func(i int, err error) { failed[i] = result{doesNotBuild, err.Error()} })
		if err != nil {
			return nil, nil, err
		}
		out, err := t.command(ctx, 10*time.Minute, ".", nil, "go", "build", t.gcflags(), "./...")
		before := len(failed)
		for _, m := range compileError.FindAllStringSubmatch(out, -1) {
			if i, ok := bugOf[m[1]]; ok {
				failed[i] = result{doesNotBuild, m[0]}
			}
		}
		indexes = slices.DeleteFunc(indexes, func(i int) bool { return failed[i].outcome != "" })
		switch {
		case err == nil:
			return indexes, failed, nil
		case len(failed) == before:
			return nil, nil, fmt.Errorf("go build: %w: %s", err, out)
		}
	}
}

var compileError = regexp.MustCompile(`(?m)^(?:\./)?(\S+\.go:\d+):\d+: .*$`)

// gcflags asks for all errors of the packages of the checkout.
func (t *trier) gcflags() string { return "-gcflags=" + t.checkout.module + "/...=-e" }

// binary compiles the tests of a package once, and returns the file.
func (t *trier) binary(ctx context.Context, pkg string) (string, error) {
	return t.once(pkg, func() (string, error) {
		file := filepath.Join(t.checkout.dir, ".mutate", strings.ReplaceAll(filepath.Clean(pkg), "/", "-")+".test")
		out, err := t.command(ctx, 10*time.Minute, ".", nil, "go", "test", "-c", "-vet=off", t.gcflags(), "-o", file, pkg)
		if err == nil && strings.Contains(out, "no test files") {
			err = errors.New("no tests to run")
		}
		if err != nil {
			err = fmt.Errorf("go test -c %s: %w: %s", pkg, err, firstLines(out))
		}
		return file, err
	})
}

// checkSound runs tests once without a bug: tests that fail anyway, or do not exist, catch
// nothing.
func (t *trier) checkSound(ctx context.Context, b *bug, pkg string) error {
	name := fmt.Sprintf("%s %s", pkg, b.flags(""))
	_, err := t.once(name, func() (string, error) {
		began := time.Now()
		out, err := t.runTests(ctx, b, pkg, 0, t.limit)
		t.mu.Lock()
		t.took[name] = time.Since(began)
		t.mu.Unlock()
		switch {
		case err != nil:
			err = fmt.Errorf("%s fails without the bug: %s", name, whatFailed(out, err))
		case !strings.Contains(out, "--- PASS"):
			err = fmt.Errorf("%s: no tests to run", name)
		}
		return "", err
	})
	return err
}

// patience returns how long the tests of a bug may take with it: much longer than without it. Many
// bugs make a test wait for what never comes.
func (t *trier) patience(b *bug, pkg string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return min(t.limit, 5*time.Second+3*t.took[fmt.Sprintf("%s %s", pkg, b.flags(""))])
}

// runTests runs the tests of a bug in a package, with the bug of a number switched on.
func (t *trier) runTests(ctx context.Context, b *bug, pkg string, number int, limit time.Duration) (string, error) {
	file, err := t.binary(ctx, pkg)
	if err != nil {
		return "", err
	}
	args := append(b.flags("test."), "-test.v", "-test.timeout="+limit.String())
	return t.command(ctx, limit+10*time.Second, pkg, []string{fmt.Sprintf("MUTANT=%d", number)}, file, args...)
}

// errTooLong is the error of commands that exceed their time limit.
var errTooLong = errors.New("the tests did not end")

// command runs a command in a directory of the checkout and returns its output. After the
// limit it kills its processes and those that they have started.
func (t *trier) command(ctx context.Context, limit time.Duration, dir string, env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTooLong)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = filepath.Join(t.checkout.dir, dir)
	cmd.Env = append(cmd.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return string(out), err
}

var failure = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`)

// whatFailed returns the name of the innermost test that failed first.
func whatFailed(out string, err error) string {
	if strings.Contains(out, "panic: test timed out") || errors.Is(err, errTooLong) {
		_, running, _ := strings.Cut(out, "running tests:")
		return "timed out: " + firstLines(running)
	}
	found := failure.FindAllStringSubmatch(out, -1)
	if found == nil {
		return err.Error() + ": " + firstLines(out)
	}
	name := found[0][1]
	for _, f := range found[1:] {
		if strings.HasPrefix(f[1], name+"/") {
			name = f[1]
		}
	}
	return name
}

// firstLines returns the beginning of an output.
func firstLines(out string) string {
	lines := strings.SplitN(strings.TrimSpace(out), "\n", 4)
	return strings.Join(lines[:min(3, len(lines))], " / ")
}
