// Package versions holds the commands that say which version of a list serves, and what has changed.
package versions

import "github.com/spf13/cobra"

// Commands returns the commands.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		newListsAcceptCommand(),
		newListsRollbackCommand(),
		newListsPinCommand(),
		newListsUnpinCommand(),
		newListsFetchCommand(),
		newListsChangesCommand(),
		newListsDiffCommand(),
	}
}
