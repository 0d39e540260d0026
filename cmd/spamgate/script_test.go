package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"spamgate/internal/cli/clitest"
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
func TestScripts(t *testing.T) {
	commands := clitest.Commands()
	commands["dns"], commands["sign"] = scriptDNS(t), scriptSign
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
