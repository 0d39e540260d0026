package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"spamgate/internal/version"
)

func NewVersionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
	}
	asJSON := cmd.Flags().Bool("json", false, "as a JSON object")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		info := version.Read()
		if *asJSON {
			return json.NewEncoder(cmd.OutOrStdout()).Encode(info)
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), info)
		return err
	}
	return cmd
}
