package fleet

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
)

func newServer() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run the server of a fleet without a gate",
		Long: `Run the server of [fleet.server] without a gate, until SIGTERM or SIGINT: as the
third vote beside two gates, on any machine. The configuration needs [fleet] and
[fleet.server] only. When clients can connect, it prints a line that begins with
"ready", and tells systemd (Type=notify).

A server that loses its store gets everything from the others again. The first
start of a cluster needs all its servers; later more than half of them.`,
		Example: `  spamgate fleet server --config /etc/spamgate/fleet.toml`,
		Args:    cobra.NoArgs,
	}
	file := cli.ConfigFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		return runServer(ctx, cmd, *file)
	}
	return cmd
}

func runServer(ctx context.Context, cmd *cobra.Command, file string) error {
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
		return err
	}
	defer s.Close()
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), "ready: %s listens on %s\n", c.Fleet.Name, c.Fleet.Server.Listen); err != nil {
		return err
	}
	daemon.SdNotify(false, daemon.SdNotifyReady)
	<-ctx.Done()
	daemon.SdNotify(false, daemon.SdNotifyStopping)
	return nil
}
