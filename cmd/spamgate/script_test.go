package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"

	"spamgate/internal/decisions"
	"spamgate/internal/defaultconfig"
)

// TestMain lets the scripts run this test binary as spamgate.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"spamgate": main})
}

// TestScripts runs testdata/script/*.txtar, command lines with the files and
// outputs that belong to them. Beside testscript's own commands there are:
//
//	exits CODE PROGRAM ARG...   runs a program and wants the exit code
//	columns N FILE              wants no line of a file, stdout or stderr wider, unless
//	                            it is one word: a long path is not broken
//	says FILE TEXT              wants a text in a file, stdout or stderr, wherever
//	                            its lines are broken: that depends on how long
//	                            the names of files are
//	dns FILE                    starts a name server, see scriptDNS
//	sign DOMAIN FROM TO         signs a message, see scriptSign
//	ship                        writes config.toml and lists as they ship
//	history FILE                puts decisions into the history of ./state: JSON, one a line
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/script",
		RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error { // where spamgate looks for mail programs, too
			e.Setenv("TZ", "UTC")
			e.Setenv("PATH", e.Getenv("PATH")+":/usr/sbin:/usr/local/sbin")
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":   scriptExits,
			"columns": scriptColumns,
			"says":    scriptSays,
			"dns":     scriptDNS(t),
			"sign":    scriptSign,
			"history": scriptHistory,
			"ship": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Check(os.WriteFile(ts.MkAbs("config.toml"), []byte(defaultconfig.Config()), 0o644))
				ts.Check(os.CopyFS(ts.MkAbs("lists"), defaultconfig.Lists()))
			},
		},
	})
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
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

func scriptHistory(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: history FILE")
	}
	r, err := decisions.Open(decisions.Options{Dir: ts.MkAbs("state/decisions"), Keep: 365 * 24 * time.Hour, MaxBytes: 1 << 30, All: true,
		Now: func() time.Time { return time.Date(2021, 11, 23, 0, 0, 0, 0, time.UTC) }})
	ts.Check(err)
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		var d decisions.Decision
		ts.Check(json.Unmarshal([]byte(line), &d))
		r.Record(&d)
	}
	ts.Check(r.Close())
}

func scriptColumns(ts *testscript.TestScript, neg bool, args []string) {
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

func scriptSays(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: says FILE TEXT")
	}
	unbroken := strings.Join(strings.Fields(ts.ReadFile(args[0])), " ")
	if strings.Contains(unbroken, args[1]) == neg {
		ts.Fatalf("text in %s: %t\n%q", args[0], neg, args[1])
	}
}
