// Package cli holds what the commands share: how one ends, the flags that several have,
// the running gate that a command asks, and files that a command writes.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"spamgate/internal/config"
	"spamgate/internal/term"
)

// The exit codes.
const (
	ExitOK     = 0
	ExitListed = 1 // check: an action other than accept; others: the answer is no
	ExitError  = 2
)

var (
	// ErrListed makes check exit with ExitListed. Nothing is printed for it.
	ErrListed = errors.New("not all accepted")

	// ErrNo makes any other command exit with that code, if the answer to what was
	// asked is no. The command has printed it.
	ErrNo = errors.New("no")

	// ErrReported makes a command exit with ExitError. The command has printed what
	// is wrong.
	ErrReported = errors.New("reported")
)

// Run executes a command line and returns the exit code.
func Run(ctx context.Context, root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var other exited
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &other):
		return other.code()
	case errors.Is(err, ErrListed), errors.Is(err, ErrNo):
		return ExitListed
	case errors.Is(err, ErrReported):
		return ExitError
	}
	printError(stderr, root.Name(), err)
	if strings.HasPrefix(err.Error(), "unknown ") || strings.HasPrefix(err.Error(), "flag needs ") { // cobra has no type for it
		fmt.Fprintf(stderr, "Run %[1]s --help for the commands, %[1]s COMMAND --help for its flags.\n", root.Name())
	}
	return ExitError
}

// PrintError writes why a command has failed. The error may quote a list, which anybody
// may have written.
func PrintError(stderr io.Writer, err error) { printError(stderr, "spamgate", err) }

func printError(stderr io.Writer, program string, err error) {
	fmt.Fprintln(term.Escape(stderr), program+":", err)
}

// NameErrors makes the errors of a command begin with its name, such as "lists add". Errors in
// the configuration begin with their place.
func NameErrors(cmd *cobra.Command) {
	named := func(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
		if run == nil {
			return nil
		}
		return func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			switch {
			case err == nil, errors.Is(err, ErrListed), errors.Is(err, ErrNo), errors.Is(err, ErrReported),
				errors.As(err, new(*config.Error)), errors.As(err, new(exited)),
				strings.HasPrefix(err.Error(), "unknown "): // cobra names the command itself
				return err
			}
			return fmt.Errorf("%s: %w", strings.TrimPrefix(cmd.CommandPath(), "spamgate "), err)
		}
	}
	cmd.RunE, cmd.Args = named(cmd.RunE), named(cmd.Args)
}

// Interruptible returns the context of a command that an interrupt ends with everything
// as it was.
func Interruptible(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

// PrintJSON writes a value as indented JSON.
func PrintJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(value); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// ConfigFlag adds the flag --config to a command.
func ConfigFlag(cmd *cobra.Command) *string {
	return cmd.Flags().StringP("config", "c", "config.toml", "the configuration `FILE`")
}

// IsForFleetd reports whether a configuration that no gate can use is one for spamgate-fleetd.
func IsForFleetd(file string) bool {
	c, err := config.LoadFleetServer(file)
	return err == nil && len(c.Lists) == 0
}
