package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"spamgate/internal/cli/clitest"
	"spamgate/internal/cli/lab"
)

// TestMain lets the scripts run this test binary as hashlab.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"hashlab": main})
}

// TestScripts runs testdata/script/*.txtar, with the commands of [clitest.Commands].
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", RequireUniqueNames: true, Cmds: clitest.Commands()})
}

func TestHelpFits(t *testing.T) { clitest.HelpFits(t, lab.NewCommand) }
