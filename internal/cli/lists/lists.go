// Package lists holds the commands of those who keep the lists.
package lists

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"spamgate/internal/cli"
	"spamgate/internal/cli/lists/edit"
	"spamgate/internal/cli/lists/look"
	"spamgate/internal/cli/lists/versions"
)

// NewCommand returns the command group.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lists",
		Short: "Maintain the lists: add, remove, find, import, compare",
		Long: `Maintain the configured lists. A change is atomic, keeps the file's comments,
order, owner and mode, is recorded in the audit log in the state directory, and
is live in a running gate at once. Two changes of one list wait for each other.

Every command that changes something has --dry-run, or changes only what a flag
such as --remove says; every command that prints has --json. Lists from a URL,
and lists in another format than the gate's own, are never changed: put
exceptions to them into a list of your own.`,
		Example: `  spamgate lists add spam.example --reason "unsolicited mail"
  spamgate lists add shop.example --for ann@example.net --reason "her wish"
  spamgate lists find spam.example
  spamgate lists remove spam.example --reason "they have stopped"
  spamgate lists import bad.txt --format hosts --list blocked --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, verb := range slices.Concat(edit.Commands(), versions.Commands(), look.Commands()) {
		checkFlags(verb)
		cli.NameErrors(verb)
		complete(verb)
		cmd.AddCommand(verb)
	}
	return cmd
}

// checkFlags has a command check its flags for empty values before it runs.
func checkFlags(cmd *cobra.Command) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkEmptyFlags(cmd); err != nil {
			return err
		}
		return run(cmd, args)
	}
}

// checkEmptyFlags returns an error for a flag without a value, as a script gives it whose
// variable is not set: another list would change than the one that is meant.
func checkEmptyFlags(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case f.Name == "note", f.Name == "reason": // texts; commands that need a reason say so
		case err == nil && f.Value.Type() == "string" && strings.TrimSpace(f.Value.String()) == "":
			err = fmt.Errorf(`--%s "": the value is empty; give one, or leave the flag out`, f.Name)
		}
	})
	return err
}
