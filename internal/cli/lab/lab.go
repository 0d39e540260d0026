// Package lab holds the commands of the hash laboratory.
package lab

import (
	"github.com/spf13/cobra"

	"spamgate/internal/cli"
	"spamgate/internal/version"
)

// NewCommand returns the command hashlab, with all others below it.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "hashlab",
		Short:   "Measure, attack and plan the hashes of Bloom filters",
		Version: version.Read().String(),
		Long: `hashlab is the hash laboratory of spamgate. It measures how the eleven classic
hashes and other hash families perform in a Bloom filter, finds names that make
a domain a false positive, and draws the rates of a planned filter.

Exit codes: 0 success; 2 an error.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetVersionTemplate("hashlab of {{.Version}}\n")
	cmd.CompletionOptions.HiddenDefaultCmd = true
	attack, compare := newAttackCommand(), newCompareCommand()
	cli.NameErrors(attack)
	cli.NameErrors(compare)
	cmd.AddCommand(attack, compare, newPlanCommand())
	return cmd
}
