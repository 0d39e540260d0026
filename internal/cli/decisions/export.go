package decisions

import (
	"bufio"
	"encoding/json"

	"github.com/spf13/cobra"

	history "spamgate/internal/decisions"
	"spamgate/internal/term"
)

func newExport() *cobra.Command {
	var f wanted
	var asCSV bool
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print all decisions, as JSON lines or CSV",
		Long: `Print all decisions in the history, or those that are wanted, the newest first:
a JSON object a line, or comma-separated values. In a fleet these are the
decisions of this gate.

Exit codes: 0 there are decisions; 1 there are none; 2 an error, and what was
printed is incomplete.`,
		Example: `  spamgate decisions export > decisions.jsonl
  spamgate decisions export --list blocked --since 30d --csv > blocked.csv`,
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&asCSV, "csv", false, "print comma-separated values; no cell is a formula")
	cmd.Args = cobra.NoArgs
	runs(cmd, func(s *session, _ []string) error {
		q, _, err := s.query(&f)
		if err != nil {
			return err
		}
		out := bufio.NewWriterSize(s.cmd.OutOrStdout(), 64<<10)
		lines, rows := json.NewEncoder(term.Escape(out)), history.NewCSV(out)
		lines.SetEscapeHTML(false)
		found := false
		err = s.history.Each(s.ctx, q, func(d history.Decision) error {
			found = true
			if asCSV {
				return rows.Write(d)
			}
			return lines.Encode(d)
		})
		if err == nil && asCSV {
			err = rows.Flush()
		}
		if err == nil {
			err = out.Flush()
		}
		if err != nil {
			return err
		}
		if _, fault, err := s.extent(); err == nil && fault != "" {
			term.PrintWrapped(term.Escape(s.cmd.ErrOrStderr()), "", "This is not the whole history. "+missesNewest(fault))
		}
		return nothing(found)
	})
	return cmd
}
