package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"spamgate/internal/cli/clitest"
	"spamgate/internal/decisions"
	"spamgate/internal/defaultconfig"
)

// TestMain lets the scripts run this test binary as spamgate.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"spamgate": main})
}

// TestScripts runs testdata/script/*.txtar, command lines with the files and
// outputs that belong to them. Beside testscript's own commands and [clitest.Commands]
// there are:
//
//	dns FILE                    starts a name server, see scriptDNS
//	sign DOMAIN FROM TO         signs a message, see scriptSign
//	ship                        writes config.toml and lists as they ship
//	history FILE                puts decisions into the history of ./state: JSON, one a line
func TestScripts(t *testing.T) {
	commands := clitest.Commands()
	commands["dns"], commands["sign"], commands["history"] = scriptDNS(t), scriptSign, scriptHistory
	commands["ship"] = func(ts *testscript.TestScript, _ bool, _ []string) {
		ts.Check(os.WriteFile(ts.MkAbs("config.toml"), []byte(defaultconfig.Config()), 0o644))
		ts.Check(os.CopyFS(ts.MkAbs("lists"), defaultconfig.Lists()))
	}
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/script",
		RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error { // where spamgate looks for mail programs, too
			e.Setenv("TZ", "UTC")
			e.Setenv("PATH", e.Getenv("PATH")+":/usr/sbin:/usr/local/sbin")
			return nil
		},
		Cmds: commands,
	})
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
