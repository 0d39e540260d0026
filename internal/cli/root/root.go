// Package root assembles the commands.
package root

import (
	"github.com/spf13/cobra"

	"spamgate/internal/cli"
	"spamgate/internal/cli/check"
	"spamgate/internal/cli/config"
	"spamgate/internal/cli/console"
	"spamgate/internal/cli/decisions"
	"spamgate/internal/cli/fleet"
	"spamgate/internal/cli/handover"
	"spamgate/internal/cli/hashes"
	"spamgate/internal/cli/health"
	"spamgate/internal/cli/lists"
	"spamgate/internal/cli/plan"
	"spamgate/internal/cli/serve"
	"spamgate/internal/version"
)

// NewCommand returns the command spamgate, with all others below it.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "spamgate",
		Short:   "An SMTP proxy that turns listed senders away",
		Version: version.Read().String(),
		Long: `spamgate is an SMTP proxy for a mail server. It looks up every sender (envelope
and header) in blocklists and refuses listed ones inside the SMTP session. If
another server keeps port 25, it can ask the gate as a policy service, as a
milter or over DNS.

Exit codes: 0 success; 1 check found a sender that is not accepted, or a command
such as lists find found nothing, or health found something wrong; 2 an error.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.CompletionOptions.HiddenDefaultCmd = true
	cmd.AddCommand(
		serve.NewCommand(),
		handover.NewCommand(),
		check.NewCommand(),
		config.NewCommand(),
		console.NewCommand(),
		decisions.NewCommand(),
		fleet.NewCommand(),
		hashes.NewCommand(),
		health.NewCommand(),
		lists.NewCommand(),
		plan.NewCommand(nil),
		decisions.NewWhy(),
		cli.NewVersionCommand(),
	)
	return cmd
}
