// Package clitest has what the tests of each program's command line share.
package clitest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"spamgate/internal/cli"
	"spamgate/internal/term"
)

// Commands returns commands of testscript, beside its own:
//
//	exits CODE PROGRAM ARG...   runs a program and wants the exit code
//	columns N FILE              wants no line of a file, stdout or stderr wider, unless
//	                            it is one word: a long path is not broken
//	says FILE TEXT              wants a text in a file, stdout or stderr, wherever
//	                            its lines are broken: that depends on how long
//	                            the names of files are
func Commands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits, "columns": columns, "says": says}
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func columns(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: columns N FILE")
	}
	limit, err := strconv.Atoi(args[0])
	ts.Check(err)
	for line := range strings.Lines(ts.ReadFile(args[1])) {
		line = strings.TrimSuffix(line, "\n")
		if n := utf8.RuneCountInString(line); n > limit && len(strings.Fields(line)) > 1 {
			ts.Fatalf("a line of %d columns:\n%s", n, line)
		}
	}
}

func says(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: says FILE TEXT")
	}
	unbroken := strings.Join(strings.Fields(ts.ReadFile(args[0])), " ")
	if strings.Contains(unbroken, args[1]) == neg {
		ts.Fatalf("text in %s: %t\n%q", args[0], neg, args[1])
	}
}

// Output runs a command, and returns what it writes to its standard output.
func Output(cmd *cobra.Command, args ...string) (string, error) {
	var out bytes.Buffer
	cmd.SilenceErrors = true
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(context.Background())
	return out.String(), err
}

// HelpFits wants each help text to fit a terminal of 80 columns.
func HelpFits(t *testing.T, root func() *cobra.Command) {
	t.Helper()
	var each func(cmd *cobra.Command)
	each = func(cmd *cobra.Command) {
		var out bytes.Buffer
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		if code := cli.Run(t.Context(), root(), args, nil, &out, &out); code != cli.ExitOK {
			t.Errorf("%s --help: exit code %d\n%s", cmd.CommandPath(), code, out.String())
		}
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			if n := utf8.RuneCountInString(line); n > term.Columns {
				t.Errorf("%s --help has a line of %d columns:\n%s", cmd.CommandPath(), n, line)
			}
		}
		for _, sub := range cmd.Commands() {
			each(sub)
		}
	}
	each(root())
}
