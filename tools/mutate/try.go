package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
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
	sound    map[string]error // results of tests without a bug
}

// try plants a bug, runs its tests, and removes it again.
func (t *trier) try(ctx context.Context, b *bug) (r result, err error) {
	restore, err := t.checkout.plant(b)
	if err != nil {
		return result{doesNotApply, err.Error()}, nil
	}
	if err := restore(); err != nil {
		return result{}, err
	}
	if err := t.checkSound(ctx, b.Test); err != nil {
		return result{noTest, err.Error()}, nil
	}
	if restore, err = t.checkout.plant(b); err != nil {
		return result{}, err
	}
	defer func() {
		if failed := restore(); err == nil {
			err = failed
		}
	}()
	out, err := t.goTest(ctx, slices.Concat([]string{"-failfast", "-count=1"}, b.Test))
	switch {
	case ctx.Err() != nil:
		return result{}, context.Cause(ctx)
	case err == nil:
		return result{survived, b.Harm}, nil
	case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
		return result{doesNotBuild, firstLines(out)}, nil
	case strings.Contains(out, "panic: test timed out"), errors.Is(err, errTooLong):
		return result{caught, "timed out"}, nil
	}
	return result{caught, firstFailure(out)}, nil
}

// checkSound runs tests once without a bug: tests that fail anyway, or do not exist, catch
// nothing.
func (t *trier) checkSound(ctx context.Context, test []string) error {
	name := strings.Join(test, " ")
	if err, known := t.sound[name]; known {
		return err
	}
	out, err := t.goTest(ctx, test)
	switch {
	case err != nil:
		err = fmt.Errorf("go test %s fails without the bug: %s", name, firstFailure(out))
	case strings.Contains(out, "no tests to run"), strings.Contains(out, "[no test files]"):
		err = fmt.Errorf("go test %s: no tests to run", name)
	}
	t.sound[name] = err
	return err
}

// errTooLong is the error of tests that exceed their time limit.
var errTooLong = errors.New("the tests did not end")

// goTest runs go test and returns its output. After the limit it kills its processes and
// those that they have started.
func (t *trier) goTest(ctx context.Context, args []string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.limit+3*time.Minute, errTooLong) // with time to build
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-vet=off", "-timeout", t.limit.String()}, args...)...)
	cmd.Dir = t.checkout.dir
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

// firstFailure returns the name of the innermost test that failed first.
func firstFailure(out string) string {
	found := failure.FindAllStringSubmatch(out, -1)
	if found == nil {
		return firstLines(out)
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
