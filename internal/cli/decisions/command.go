// Package decisions has the commands that search the history of decisions.
package decisions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"spamgate/internal/cli"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	history "spamgate/internal/decisions"
	"spamgate/internal/words"
)

// NewCommand returns the command with all below it.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "decisions",
		Short: "Search the history of decisions",
		Long: `Search the history of decisions: what the gate did with which message, and why.
The commands ask the running gate. If none is running they read the state
directory, as the user to whom it belongs.

With [log] addresses = "hash" the history has hashes, and whole addresses can be
found. With "domain" it has domains only.

Exit codes: 0 something was found; 1 nothing was; 2 an error.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newFind(), newTop(), newExport())
	return cmd
}

// session is one run of a command.
type session struct {
	cmd     *cobra.Command
	ctx     context.Context
	config  *config.Config
	history *local.History
	now     time.Time
}

// runs makes a command open the history and run.
func runs(cmd *cobra.Command, run func(*session, []string) error) {
	file := cli.ConfigFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkEmpty(cmd); err != nil {
			return err
		}
		ctx, stop := cli.Interruptible(cmd)
		defer stop()
		c, err := config.Load(*file)
		if err != nil {
			return err
		}
		h, ran, err := local.OpenHistory(cmd, c)
		if ran || err != nil {
			return err
		}
		defer h.Close()
		err = local.HistoryError(run(&session{cmd, ctx, c, h, time.Now()}, args))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	cli.NameErrors(cmd)
}

// checkEmpty returns an error for a flag with an empty value, as a script with an empty variable
// has it: that would find everybody's mail.
func checkEmpty(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.String() == "" {
			err = fmt.Errorf("--%s is empty: leave it out to find all", f.Name)
		}
	})
	return err
}

// format is how a command prints what it found.
type format struct{ json, csv bool }

func (f *format) add(cmd *cobra.Command, asJSON string) {
	cmd.Flags().BoolVar(&f.json, "json", false, asJSON)
	cmd.Flags().BoolVar(&f.csv, "csv", false, "print comma-separated values; no cell is a formula")
	cmd.MarkFlagsMutuallyExclusive("json", "csv")
}

// extent returns the time of the oldest decision in the history, nil if it is empty, and why the
// history stands still, "" if it does not.
func (s *session) extent() (reach *time.Time, fault string, err error) {
	page, err := s.history.Find(s.ctx, history.Query{Limit: 1})
	return page.Reach, page.Fault, err
}

// missesNewest says that the newest decisions are missing, and why.
func missesNewest(fault string) string {
	return "The newest decisions are not in it: it stands still (" + fault + "); the log has them."
}

// parseSince parses --since, "" for no bound.
func (s *session) parseSince(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	since, err := words.ParseSince(text, s.now)
	if err != nil {
		err = fmt.Errorf("--since: %w", err)
	}
	return since, err
}

// checkMost checks the number of a flag.
func checkMost(flag string, n, most int) error {
	if n < 1 || n > most {
		return fmt.Errorf("--%s %d: use a number from 1 to %d", flag, n, most)
	}
	return nil
}

// nothing returns the error of a command that has found nothing.
func nothing(found bool) error {
	if found {
		return nil
	}
	return cli.ErrNo
}

var errHashes = errors.New(`the history has hashes of addresses ([log] addresses = "hash"), so that no domain can be found; ask for a whole address`)
