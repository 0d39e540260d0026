// Package fleet has the commands of a fleet: gates that share lists.
package fleet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"spamgate/internal/admin"
	"spamgate/internal/cli"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/term"
)

// NewCommand returns the command with all below it.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "See and change what gates share",
		Long: `A fleet is several gates that share lists through NATS JetStream. In the
configuration, [fleet] names the servers, and fleet = true in a [[list]] shares
the list. Each gate keeps the lists in files of its own, and serves them without
the fleet, too: mail never waits for it.

docs/fleet.md brings up three gates in ten commands, and says what happens in
each failure. status, diff, join and leave ask the running gate.`,
		Example: `  spamgate fleet init mx1=192.0.2.1 mx2=192.0.2.2 mx3=192.0.2.3
  spamgate fleet status
  spamgate fleet diff`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, verb := range []*cobra.Command{newStatus(), newDiff(), newJoin(), newLeave(), newInit(), newMember()} {
		cli.NameErrors(verb)
		cmd.AddCommand(verb)
	}
	return cmd
}

// session is one run of a command that asks the running gate.
type session struct {
	cmd    *cobra.Command
	gate   *admin.Client
	config *config.Config
	json   bool
}

// runs adds --config and --json to a command, and has it ask the running gate.
func runs(cmd *cobra.Command, do func(ctx context.Context, s *session, args []string) error) *cobra.Command {
	file := cli.ConfigFlag(cmd)
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := config.Load(*file)
		if err != nil {
			return withoutGate(*file, err)
		}
		ctx, stop := cli.Interruptible(cmd)
		defer stop()
		gate := local.DialGate(c)
		defer gate.Close()
		switch {
		case gate.Err != nil:
			return gate.Err
		case gate.Client == nil && !c.Fleet.On():
			return admin.ErrNoFleet
		case gate.Client == nil:
			return fmt.Errorf("no gate is running: nothing answers at %s; start it (systemctl start spamgate, or spamgate serve)", c.Admin.Socket)
		}
		return tooOld(do(ctx, &session{cmd, gate.Client, c, *asJSON}, args))
	}
	return cmd
}

// withoutGate returns the error of a configuration that no gate can use. One that is for spamgate-fleetd
// has a better one.
func withoutGate(file string, err error) error {
	if !local.IsForFleetd(file) {
		return err
	}
	return fmt.Errorf("%s is for spamgate-fleetd, and no gate runs with it: run this command on a gate of the fleet", file)
}

func jsonFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("json", false, "print JSON, for programs")
}

// tooOld returns an error with what to do if the running gate is older than this program.
func tooOld(err error) error {
	if local.IsTooOld(err) {
		return errors.New("the running gate is an older version, which knows no fleet: spamgate handover replaces it")
	}
	return err
}

// print writes a report to standard output: as JSON, or with text.
func (s *session) print(report any, text func(w io.Writer)) error {
	return printTo(s.cmd, s.json, report, text)
}

func printTo(cmd *cobra.Command, asJSON bool, report any, text func(w io.Writer)) error {
	out := bufio.NewWriter(term.Escape(cmd.OutOrStdout()))
	if asJSON {
		return errors.Join(cli.PrintJSON(out, report), out.Flush())
	}
	text(out)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// width is that of the terminal.
func (s *session) width() int { return term.Width(s.cmd.OutOrStdout(), 100) }
