// Command spamgate is an SMTP proxy that stands in front of a mail server and
// turns listed senders away.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitOK     = 0
	exitListed = 1 // check: an action other than accept; others: their answer is no
	exitError  = 2
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errListed), errors.Is(err, errNo):
		return exitListed
	case errors.Is(err, errSaid):
		return exitError
	default:
		printError(stderr, err)
		if strings.HasPrefix(err.Error(), "unknown ") || strings.HasPrefix(err.Error(), "flag needs ") { // cobra has no type for it
			fmt.Fprintln(stderr, "Run spamgate --help for the commands, spamgate COMMAND --help for its flags.")
		}
		return exitError
	}
}

// printError says why a command has failed. The error may quote a list, which
// anybody may have written.
func printError(stderr io.Writer, err error) { fmt.Fprintln(harmless{stderr}, "spamgate:", err) }

// errListed makes check exit with exitListed; there is nothing to say about it.
var errListed = errors.New("not all accepted")

// errNo makes a command exit with the same code where the answer to what was
// asked is no, and everything has been said.
var errNo = errors.New("no")

// errSaid makes a command exit with exitError that has said itself what is wrong.
var errSaid = errors.New("said already")

func newRootCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "spamgate",
		Short:   "An SMTP proxy that turns listed senders away",
		Version: readBuildInfo().String(),
		Long: `spamgate stands in front of a mail server, looks every sender up in lists
(envelope and header), and turns listed ones away inside the SMTP session.

Exit codes: 0 fine; 1 check found a sender that is not accepted, or a command
such as lists find has nothing to show; 2 an error.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.CompletionOptions.HiddenDefaultCmd = true
	cmd.AddCommand(
		newServeCommand(),
		newCheckCommand(),
		newConfigCommand(),
		newHashesCommand(),
		newListsCommand(),
		newPlanCommand(),
		newVersionCommand(),
	)
	return cmd
}

// configFlag adds --config.
func configFlag(cmd *cobra.Command) *string {
	return cmd.Flags().StringP("config", "c", "config.toml", "the configuration `FILE`")
}
