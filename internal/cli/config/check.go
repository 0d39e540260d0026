// Package config holds the commands about the configuration.
package config

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/blocklist"
	"spamgate/internal/cli"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/providers"
	"spamgate/internal/recipients"
	"spamgate/internal/report"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Write, check and show the configuration",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	check := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration and the lists",
		Long: `Check the configuration and the lists as serve would load them. The command does
not listen, connect, fetch or write. It reports invalid and unsupported lines of
lists, entries that cover a protected domain or names below it, and <> and name@
in lists from a URL. The gate skips them.

Each error names the place, the fault and the remedy, as with serve and a
reload. Doubtful settings, such as a certificate that expires soon, are
warnings. Only a start shows whether ports are free, whether the next hop
answers, and whether the gate's user may read all files. Lists in DNS are not
asked: spamgate check ADDRESS does that.

Exit codes: 0 configuration and lists are good; 2 they are not, an update of a
list is held, or a list has lines and lists nobody.`,
		Args: cobra.NoArgs,
	}
	file := cli.ConfigFlag(check)
	check.RunE = func(cmd *cobra.Command, _ []string) error {
		return checkConfig(cmd, *file)
	}
	cmd.AddCommand(newInitCommand(), check, newShowCommand(), newConfigProvidersCommand())
	return cmd
}

func newConfigProvidersCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "providers",
		Short: "Print the mail providers that protect_providers protects",
		Long: `Print the domains of large mail providers, one per line. With
protect_providers = true in [guard] no block list can cover them entirely.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(providers.Domains(), "\n"))
			return err
		},
	}
}

func checkConfig(cmd *cobra.Command, file string) error {
	c, err := config.Load(file)
	if err != nil {
		return err
	}
	lists, err := setup.BlocklistConfig(c, nil)
	if err != nil {
		return err
	}
	if warning, err := setup.CheckState(c, false); err == nil && warning != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", warning)
	}
	lists.ReadOnly = true
	set, listStats, err := local.BuildSet(cmd.Context(), lists, cmd.ErrOrStderr())
	printProblems(cmd.ErrOrStderr(), listStats)
	if err != nil {
		err = setup.ExplainMissing(c, err)
	}
	found := setup.FindFaults(c)
	found.MissingSockets()
	found.Fleet()
	c.Warnings = append(c.Warnings, found.Warnings...)
	files, unread := setup.ReadRecipients(c)
	if err := errors.Join(config.Join(found.Errors), setup.CheckLoop(c, found.Sockets), setup.CheckLog(c), unread, err); err != nil {
		return err
	}
	if err := set.Probe(cmd.Context(), 0); err != nil {
		return fmt.Errorf("measuring the filter: %w", err)
	}
	out := cmd.OutOrStdout()
	held := errors.Join(outdated(listStats), listNobody(listStats), heldRecipients(c, files))
	if held == nil {
		fmt.Fprintf(out, "%s: good\n", file)
	}
	report.PrintLists(out, set.Stats())
	label := "listening"
	for _, l := range c.Listeners {
		term.PrintParts(out, label, report.DescribeListener(l, l.Addr))
		label = ""
	}
	report.PrintDoors(out, c)
	report.PrintConsole(out, c, c.Console.Addr)
	report.PrintPublish(out, c, c.Publish.Addr)
	report.PrintLimits(out, c)
	report.PrintNextHops(out, c)
	report.PrintRecipients(out, files)
	report.PrintPolicies(out, c)
	report.PrintMode(out, c)
	for _, warning := range c.Warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", warning)
	}
	for _, warning := range []string{setup.DescriptorWarning(c, setup.DescriptorLimit()), report.Unconfirmed(c, set.Stats()), set.Stats().Warning} {
		if warning != "" {
			fmt.Fprintln(cmd.ErrOrStderr(), "warning:", warning)
		}
	}
	return held
}

// heldRecipients returns an error about files with recipients of which an earlier version
// serves.
func heldRecipients(c *config.Config, files []*recipients.File) error {
	var errs []error
	for _, f := range files {
		if s := f.Status(); s.Err != nil {
			errs = append(errs, fmt.Errorf("its last good version serves: %w", setup.RecipientFault(c, s.Spec, s.Err)))
		}
	}
	return errors.Join(errs...)
}

// outdated returns an error about lists of which an earlier version serves.
func outdated(lists []blocklist.ListStats) error {
	var errs []error
	for _, l := range lists {
		if l.Err != nil && l.LastGood {
			errs = append(errs, fmt.Errorf("list %q: its last good version serves: %w", l.Name, l.Err))
		}
	}
	return errors.Join(errs...)
}

// listNobody returns an error about lists that list nobody although they have lines. The gate
// serves them: a list that says nothing must not stop mail.
func listNobody(lists []blocklist.ListStats) error {
	var errs []error
	for _, l := range lists {
		if why := l.ListsNobody(); why != "" {
			errs = append(errs, fmt.Errorf("list %q: %s", l.Name, why))
		}
	}
	return errors.Join(errs...)
}

// printProblems reports the lines of the lists that were left out, and what was
// passed over on purpose.
func printProblems(w io.Writer, lists []blocklist.ListStats) {
	for _, l := range lists {
		shown := map[string]int{}
		for _, p := range l.Problems {
			hint := p.Hint
			if hint != "" {
				hint = "; " + hint
			}
			fmt.Fprintf(w, "%s:%d: %q: %s%s\n", term.ShortPath(p.File), p.Line, p.Text, p.What, hint)
			shown[sortOf(p)]++
		}
		for _, all := range []struct {
			sort, item, many string
			n                int
		}{
			{invalidLine, "invalid line", "invalid lines", l.Invalid},
			{unsupportedLine, "unsupported line", "unsupported lines", l.Unsupported},
			{protectedLine, "protected name", "protected names", l.Protected},
			{disallowedLine, "disallowed entry", "disallowed entries", l.Disallowed},
		} {
			if more := all.n - shown[all.sort]; more > 0 {
				fmt.Fprintf(w, "list %s: %s more\n", l.Name, text.Count(more, all.item, all.many))
			}
		}
		for _, note := range l.Notes {
			fmt.Fprintf(w, "list %s: %s\n", l.Name, note)
		}
	}
}

// The sorts of lines that are left out.
const (
	invalidLine     = "invalid"
	unsupportedLine = "unsupported"
	protectedLine   = "protected"
	disallowedLine  = "disallowed"
)

func sortOf(p blocklist.FileProblem) string {
	switch {
	case p.Protected:
		return protectedLine
	case p.Disallowed:
		return disallowedLine
	case p.Unsupported:
		return unsupportedLine
	}
	return invalidLine
}
