package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"spamgate/blocklist"
	"spamgate/internal/config"
)

func newConfigCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check the configuration",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	check := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration and the lists",
		Long: `Check the configuration and the lists as serve would load them. Nothing is
listened on, connected to or written. Invalid lines of a list are reported and,
as when serving, skipped.

Whether sockets, syslog or the next hop are there shows only at the start.

Exit codes: 0 configuration and lists are good; 2 they are not.`,
		Args: cobra.NoArgs,
	}
	file := configFlag(check)
	check.RunE = func(cmd *cobra.Command, _ []string) error {
		return checkConfig(cmd, *file)
	}
	cmd.AddCommand(check)
	return cmd
}

func checkConfig(cmd *cobra.Command, file string) error {
	c, err := config.Load(file)
	if err != nil {
		return err
	}
	if !slices.Contains(c.Listen.Addr, config.Systemd) {
		sockets, err := endpoints(c.Listen.Addr)
		if err == nil {
			err = checkLoop(c, sockets)
		}
		if err != nil {
			return err
		}
	}
	lists, err := blocklistConfig(c, nil)
	if err != nil {
		return err
	}
	set, listStats, err := blocklist.Build(cmd.Context(), lists)
	printProblems(cmd.ErrOrStderr(), listStats)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%s: good\n", file)
	printMode(out, c)
	printLists(out, set.Stats())
	return nil
}

// printProblems reports the invalid lines of the lists.
func printProblems(w io.Writer, lists []blocklist.ListStats) {
	for _, l := range lists {
		for _, p := range l.Problems {
			hint := p.Hint
			if hint != "" {
				hint = "; " + hint
			}
			fmt.Fprintf(w, "%s:%d: %q: %s%s\n", shorten(p.File), p.Line, p.Text, p.What, hint)
		}
		if more := l.Invalid - len(l.Problems); more > 0 {
			fmt.Fprintf(w, "list %s: %s more\n", l.Name, count(more, "invalid line", "invalid lines"))
		}
	}
}
