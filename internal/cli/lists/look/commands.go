// Package look holds the commands that read lists and say what they have.
package look

import "github.com/spf13/cobra"

// Commands returns the commands.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		newListsFindCommand(),
		newListsLintCommand(),
		newListsExportCommand(),
		newListsPublishCommand(),
		newListsTestCommand(),
		newListsCompareCommand(),
		newListsStatusCommand(),
		newListsUnusedCommand(),
	}
}
