package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"spamgate/blocklist"
	"spamgate/internal/config"
	"spamgate/smtpfilter/nexthop"
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
	if err := checkEntrances(c); err != nil {
		return err
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
	printLists(out, set.Stats())
	label := "listening"
	for _, l := range c.Listeners {
		printParts(out, label, describeListener(l, l.Addr))
		label = ""
	}
	printNextHops(out, c)
	printMode(out, c)
	if warning := unconfirmed(c, set.Stats()); warning != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", warning)
	}
	return nil
}

// checkEntrances checks what the listeners and the next hop need, as far as that
// can be seen from here.
func checkEntrances(c *config.Config) error {
	var errs []error
	var sockets []endpoint
	for _, l := range c.Listeners {
		if !slices.Contains(l.Addr, config.Systemd) {
			found, err := endpoints(l, nil)
			sockets = append(sockets, found...)
			errs = append(errs, err)
		}
		cert, err := openCertificate(l, nil)
		if cert != nil {
			err = cert.Close()
		}
		errs = append(errs, err)
	}
	for _, addr := range c.NextHop.Addr {
		_, err := nexthop.Parse(addr)
		errs = append(errs, err)
	}
	_, err := tlsConfig(c.NextHop)
	return errors.Join(append(errs, err, checkLoop(c, sockets))...)
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
