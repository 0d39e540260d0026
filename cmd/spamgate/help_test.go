package main

import (
	"testing"

	"spamgate/internal/cli/clitest"
	"spamgate/internal/cli/root"
)

func TestHelpFits(t *testing.T) { clitest.HelpFits(t, root.NewCommand) }
