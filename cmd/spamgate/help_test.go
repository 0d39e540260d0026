package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"spamgate/internal/cli"
	"spamgate/internal/cli/root"
	"spamgate/internal/term"
)

// Each help text fits a terminal of 80 columns.
func TestHelpFits(t *testing.T) {
	var each func(cmd *cobra.Command)
	each = func(cmd *cobra.Command) {
		var out bytes.Buffer
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		if code := run(t.Context(), args, nil, &out, &out); code != cli.ExitOK {
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
	each(root.NewCommand())
}
