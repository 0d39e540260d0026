package decisions

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"spamgate/internal/cli"
	history "spamgate/internal/decisions"
	"spamgate/internal/logging"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// kinds are what can be ranked, with the title of the column.
var kinds = map[string]string{"senders": "sender", "domains": "domain", "lists": "list", "clients": "client"}

// maxRanked bounds --most.
const maxRanked = 1000

func newTop() *cobra.Command {
	var f wanted
	var out format
	var most int
	cmd := &cobra.Command{
		Use:   "top senders|domains|lists|clients",
		Short: "Rank the senders, their domains, lists or clients by decisions",
		Long: `Count the decisions in the history by sender, by the sender's domain, by list or
by client, and print the most frequent ones. In a fleet it counts those of this
gate.

Exit codes: 0 there are decisions; 1 there are none; 2 an error.`,
		Example: `  spamgate decisions top senders --since 7d
  spamgate decisions top lists --action reject --json`,
		ValidArgs: []string{"senders", "domains", "lists", "clients"},
	}
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 || !slices.Contains(cmd.ValidArgs, args[0]) {
			return fmt.Errorf("say what to rank: %s", strings.Join(cmd.ValidArgs, ", "))
		}
		return nil
	}
	f.addCommon(cmd, "1d")
	cmd.Flags().IntVar(&most, "most", 20, "print only the `N` most frequent ones")
	out.add(cmd, "print a JSON object")
	runs(cmd, func(s *session, args []string) error {
		kind := args[0]
		if err := checkMost("most", most, maxRanked); err != nil {
			return err
		}
		if kind == "domains" && s.config.Log.Addresses == logging.AddressesHash {
			return errHashes
		}
		q, _, err := s.query(&f)
		if err != nil {
			return err
		}
		since := q.Since
		q.Since = time.Time{}
		ranked, err := s.history.Top(s.ctx, kind, since, most, q)
		if err != nil {
			return err
		}
		if err := s.printTop(out, kind, since, ranked); err != nil {
			return err
		}
		return nothing(len(ranked) > 0)
	})
	return cmd
}

// topJSON is a ranking for programs.
type topJSON struct {
	Kind   string           `json:"kind"`
	Since  time.Time        `json:"since"`
	Ranked []history.Ranked `json:"ranked"`
	Reach  *time.Time       `json:"reaches_back_to,omitempty"`
	Fault  string           `json:"stands_still,omitempty"`
}

func (s *session) printTop(f format, kind string, since time.Time, ranked []history.Ranked) error {
	if f.csv {
		return writeTop(s.cmd.OutOrStdout(), ranked)
	}
	w := term.Escape(s.cmd.OutOrStdout())
	reach, fault, err := s.extent()
	if err != nil {
		return err
	}
	if f.json {
		if ranked == nil {
			ranked = []history.Ranked{}
		}
		return cli.PrintJSON(w, topJSON{kind, since, ranked, reach, fault})
	}
	t := term.Table{Columns: []term.Column{{Title: kinds[kind]}, {Title: "decisions"}, {Title: "last", Left: true}}}
	for _, r := range ranked {
		t.Add(r.Name, text.Number(r.Count), r.Last.Local().Format(time.DateTime))
	}
	if len(ranked) > 0 {
		t.Write(w, term.Columns)
		fmt.Fprintln(w)
	}
	message := "Since " + since.Local().Format(time.DateTime) + "."
	if len(ranked) == 0 {
		message = "No decisions since " + since.Local().Format(time.DateTime) + "."
	}
	message += " " + reaches(reach)
	if fault != "" {
		message += " " + missesNewest(fault)
	}
	term.PrintWrapped(w, "", message)
	return nil
}

// writeTop writes a ranking as comma-separated values.
func writeTop(w io.Writer, ranked []history.Ranked) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"name", "count", "last"}}
	for _, r := range ranked {
		rows = append(rows, []string{history.Cell(r.Name), strconv.FormatInt(r.Count, 10), r.Last.UTC().Format(time.RFC3339Nano)})
	}
	return out.WriteAll(rows)
}
