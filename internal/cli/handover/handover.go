// Package handover is the command that has the running gate hand over to a new process.
package handover

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"spamgate/internal/admin"
	"spamgate/internal/cli"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// defaultTimeout is the limit that the gate has for SIGUSR2.
const defaultTimeout = 5 * time.Minute

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "handover",
		Short: "Have the running gate hand over to a new process",
		Long: `Ask the running gate to start its program file again, which may be another
version by now, and to hand its listeners over to that process. No client is
refused: the old process serves the clients that it has, and then ends. A
handover also applies settings that a reload does not change.

The command waits until the new process serves. If that fails to start or takes
longer than --timeout, or if the command is interrupted, the old process goes on
as if nothing had happened.

Exit codes: 0 handed over; 1 no gate is running; 2 not handed over.`,
		Example: `  spamgate handover --config /etc/spamgate/config.toml
  spamgate handover --timeout 15m --json`,
		Args: cobra.NoArgs,
	}
	file := cli.ConfigFlag(cmd)
	timeout := cli.DurationFlag(cmd, "timeout", defaultTimeout, "the new process serves within this `TIME`")
	asJSON := cmd.Flags().Bool("json", false, "print JSON, for programs")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *timeout <= 0 || *timeout > admin.MaxHandover {
			return fmt.Errorf("--timeout %v: use more than 0 and at most %v", *timeout, admin.MaxHandover)
		}
		c, err := config.Load(*file)
		if err != nil && local.IsForFleetd(*file) {
			fmt.Fprintf(term.Escape(cmd.ErrOrStderr()), "spamgate: %s is for spamgate-fleetd, and no gate runs with it\n", *file)
			return cli.ErrNo
		}
		if err != nil {
			return errors.Join(err, errors.New("nothing has changed for a gate that runs: it goes on with the configuration that it has read"))
		}
		if c.Admin.Socket == "" {
			return errors.New("the gate cannot be asked, since [admin] socket is empty: send it SIGUSR2, and look for \"handed over\" in its log")
		}
		ctx, stop := cli.Interruptible(cmd)
		defer stop()
		done, err := handOver(ctx, c.Admin.Socket, *timeout)
		if *asJSON {
			if err := printJSON(cmd.OutOrStdout(), done, err); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, admin.ErrNotRunning):
			printNotRunning(term.Escape(cmd.ErrOrStderr()), err, *file)
			return cli.ErrNo
		case err != nil || *asJSON:
			return err
		}
		return print(cmd.OutOrStdout(), done)
	}
	cli.NameErrors(cmd)
	return cmd
}

// grace is added to the timeout of the gate, which ends the handover and says so.
const grace = 30 * time.Second

// handOver asks the gate at a socket to hand over, and the new process for its version.
func handOver(ctx context.Context, socket string, timeout time.Duration) (*admin.HandedOver, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout+grace, errors.New("the gate does not answer; its log says whether it has handed over"))
	defer cancel()
	old, err := admin.Dial(socket)
	if err != nil {
		return nil, err
	}
	defer old.Close()
	done, err := admin.Call(ctx, old, admin.OpHandover, admin.HandoverRequest{TimeoutSeconds: timeout.Seconds()})
	var refused *admin.Error
	switch {
	case errors.Is(err, context.Canceled):
		return nil, errors.New("interrupted: the running gate goes on, unless its log says that it has handed over")
	case errors.Is(err, context.DeadlineExceeded):
		return nil, context.Cause(ctx)
	case errors.As(err, &refused) && refused.Code == "no_path":
		return nil, errors.New(`the running gate is too old for this command: send it SIGUSR2, and look for "handed over" in its log`)
	case err != nil:
		return nil, err
	}
	// The new process may already be handing over itself, so what it says is not needed.
	if client, err := admin.Dial(socket); err == nil {
		defer client.Close()
		if s, err := admin.Call(ctx, client, admin.OpStatus, admin.None{}); err == nil && s.PID == done.New.PID {
			done.New.Version = s.Version
		}
	}
	return &done, nil
}

// printJSON writes the result as JSON.
func printJSON(w io.Writer, done *admin.HandedOver, err error) error {
	answer := struct {
		Running bool   `json:"running"` // false: there is no gate
		Done    bool   `json:"handed_over"`
		Error   string `json:"error,omitempty"`
		*admin.HandedOver
	}{!errors.Is(err, admin.ErrNotRunning), err == nil, "", done}
	if err != nil {
		answer.Error = err.Error()
	}
	return cli.PrintJSON(w, answer)
}

// print writes the result for people.
func print(stdout io.Writer, done *admin.HandedOver) error {
	w := bufio.NewWriter(term.Escape(stdout))
	term.PrintWrapped(w, "handed over: ", fmt.Sprintf("%s to %s, within %.1f s",
		describe(done.Old), describe(done.New), done.Seconds))
	if done.Sessions == 0 {
		term.PrintWrapped(w, "", fmt.Sprintf("No client is connected to process %d any more, and it ends.", done.Old.PID))
	} else {
		term.PrintWrapped(w, "", fmt.Sprintf("Process %d still has %s, and ends after them, within %.0f s.",
			done.Old.PID, text.Count(done.Sessions, "session", "sessions"), done.EndsWithin))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("it is done, and only the report is lost: %w", err)
	}
	return nil
}

// describe names a process.
func describe(p admin.Process) string {
	if p.Version == "" {
		return fmt.Sprintf("process %d", p.PID)
	}
	return fmt.Sprintf("version %s (process %d)", p.Version, p.PID)
}

// printNotRunning says what to do if no gate is running.
func printNotRunning(w io.Writer, err error, file string) {
	fmt.Fprintln(w, "spamgate: handover:", err)
	term.PrintWrapped(w, "", fmt.Sprintf(
		"A start runs the program that is on disk now: systemctl start spamgate, or spamgate serve --config %s.", term.ShellWord(file)))
}
