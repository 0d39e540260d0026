// Package edit holds the commands that change entries of lists.
package edit

import "github.com/spf13/cobra"

// Commands returns the commands.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		newListsAddCommand(),
		newListsRemoveCommand(),
		newListsMoveCommand(),
		newListsImportCommand(),
		newListsUndoCommand(),
	}
}
