// Package fleetd is the program spamgate-fleetd, which runs a server of a fleet. The gate does not link
// it: what ends the server does not end mail.
package fleetd

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"spamgate/internal/cli"
	"spamgate/internal/config"
	"spamgate/internal/fleet/natsserver"
	"spamgate/internal/logging"
	"spamgate/internal/setup"
	"spamgate/internal/version"
)

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "spamgate-fleetd",
		Short:   "Run a server of a fleet of spamgate",
		Version: version.Read().String(),
		Long: `Run the NATS server of [fleet.server] until SIGTERM or SIGINT. Gates use it as any
other server, which [fleet] servers names. The file may be the gate's, or one
for a machine without a gate: then [fleet], [fleet.server] and [state] do. When
clients can connect, it prints a line that begins with "ready", and tells systemd
(Type=notify), to which it also says how the servers are.

SIGHUP reads the certificate again, and opens a log file again. Other changes
need a restart, which the other servers bridge.

A server that loses its store gets everything from the others again. The first
start of a cluster needs all its servers; later more than half of them.

Exit codes: 0 stopped by a signal; 2 an error.`,
		Example:       `  spamgate-fleetd --config /etc/spamgate/config.toml`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
	}
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.CompletionOptions.DisableDefaultCmd = true
	file := cli.ConfigFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return run(cmd, *file) }
	return cmd
}

func run(cmd *cobra.Command, file string) error {
	// If the reader of standard error goes away, the server goes on: SIGPIPE would end it.
	signal.Ignore(syscall.SIGPIPE)
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := config.LoadFleetServer(file)
	if err != nil {
		return err
	}
	stderr := logging.NewWriter(cmd.ErrOrStderr())
	defer stderr.Close()
	log, err := setup.OpenLog(c, stderr)
	if err != nil {
		return err
	}
	defer log.Close()
	s, err := natsserver.Start(ctx, natsserver.FromConfig(c, log.Logger))
	if err != nil {
		return fmt.Errorf("starting the server of the fleet: %w", err)
	}
	defer s.Close()
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), "ready: %s listens on %s\n", c.Fleet.Name, c.Fleet.Server.Listen); err != nil {
		return err
	}
	daemon.SdNotify(false, daemon.SdNotifyReady)
	serve(ctx, s, log, reload)
	daemon.SdNotify(false, daemon.SdNotifyStopping)
	return nil
}

// serve waits until ctx ends, and reads again what may change at each signal.
func serve(ctx context.Context, s *natsserver.Server, log *logging.Log, reload <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-reload:
		}
		log.Reopen()
		if err := s.ReadCertificates(); err != nil {
			log.Logger.Warn("certificate not loaded, the old one stays", "error", err)
			continue
		}
		log.Logger.Info("server of the fleet has read its certificate again; other changes need a restart")
	}
}
