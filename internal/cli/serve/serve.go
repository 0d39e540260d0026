// Package serve is the command that runs the gate.
package serve

import (
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"spamgate/internal/cli"
	"spamgate/internal/gate"
	"spamgate/internal/logging"
)

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the gate",
		Long: `Run the gate until SIGTERM or SIGINT. It then accepts no more clients, lets open
transactions finish ([listen] shutdown_timeout), and exits with 0. A second
signal ends the wait, except for a message that the next hop has to answer.

SIGHUP reloads the configuration and the lists; a configuration with an error
changes nothing. The log names changes that need a restart. A log file is always
reopened. SIGUSR1 logs the state of the lists and the filter.

SIGUSR2 starts the program file again, which may be a new version by then, and
passes the listening sockets to the new process. When that serves, this process
accepts no more clients, serves those it has for up to 5 seconds, and then stops
as with SIGTERM. If the new process fails to start, this one continues.`,
		Args: cobra.NoArgs,
	}
	file := cli.ConfigFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		// If the reader of standard error goes away, the gate goes on: SIGPIPE would end it.
		signal.Ignore(syscall.SIGPIPE)
		stderr := logging.NewWriter(cmd.ErrOrStderr())
		defer stderr.Close()
		if err := gate.Serve(cmd.Context(), *file, stderr); err != nil {
			cli.PrintError(stderr, cmd.Root().Name(), err)
			return cli.ErrReported
		}
		return nil
	}
	return cmd
}
