package decisions

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"spamgate/blocklist/verdict"
	"spamgate/internal/cli"
	"spamgate/internal/config"
	history "spamgate/internal/decisions"
	"spamgate/internal/fleetsearch"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// maxFound bounds --last, and so the memory.
const maxFound = 10000

func newFind() *cobra.Command {
	var f wanted
	var out format
	var last int
	var here bool
	cmd := &cobra.Command{
		Use:   "find",
		Short: "Find decisions by sender, recipient, list or id",
		Long: `Find decisions in the history, the newest first. Several flags must all hold. A
sender is one of the envelope or of the header. spamgate why ID says in words
what happened to one message.

If a client is refused again and again for the same, the first ten refusals
within a minute have a row each. The others share the last one, with their
number. With [decisions] record = "refused" accepted messages of senders on no
list are not in the history.

In a fleet all gates are asked, and the answer names those that did not answer
within 3 seconds. With [log] addresses = "hash" each gate has its own hashes, so
that an address is only found here.

Exit codes: 0 something was found; 1 nothing was; 2 an error, or nothing was
found and a gate of the fleet did not answer.`,
		Example: `  spamgate decisions find --sender someone@example.org --since 2d
  spamgate decisions find --recipient ann@example.net --action reject
  spamgate decisions find --domain example.org --csv > example.org.csv`,
	}
	f.add(cmd)
	cmd.Flags().IntVar(&last, "last", 50, "show only the `N` newest decisions")
	cmd.Flags().BoolVar(&here, "here", false, "search this gate only, not the whole fleet")
	out.add(cmd, "print a JSON object")
	cmd.Args = cobra.NoArgs
	runs(cmd, func(s *session, _ []string) error {
		if err := checkMost("last", last, maxFound); err != nil {
			return err
		}
		q, notes, err := s.query(&f)
		if err != nil {
			return err
		}
		f, err := s.find(q, last, here)
		if err != nil {
			return err
		}
		if err := s.printFound(out, &f, notes); err != nil {
			return err
		}
		if len(f.Decisions) == 0 && !f.Whole() {
			return cli.ErrReported
		}
		return nothing(len(f.Decisions) > 0)
	})
	return cmd
}

// printFound prints what was found in a format. Notes are for people.
func (s *session) printFound(f format, page *fleetsearch.Page, notes []string) error {
	w := term.Escape(s.cmd.OutOrStdout())
	switch {
	case f.json:
		return cli.PrintJSON(w, page)
	case f.csv:
		return writeCSV(s.cmd.OutOrStdout(), page)
	}
	for i := range page.Decisions {
		printDecision(w, &page.Decisions[i].Decision, page.Decisions[i].Gate)
	}
	if len(page.Decisions) > 0 {
		fmt.Fprintln(w)
	}
	if text := page.Answered(); text != "" {
		notes = append(notes, text)
	}
	for _, note := range notes {
		term.PrintWrapped(w, "", note)
	}
	term.PrintWrapped(w, "", s.summary(page))
	return nil
}

// writeCSV writes what was found as comma-separated values. In a fleet the first column is the gate.
func writeCSV(w io.Writer, page *fleetsearch.Page) error {
	var gate []string
	if page.Gates != nil {
		gate = []string{"gate"}
	}
	rows := history.NewCSV(w, gate...)
	for _, d := range page.Decisions {
		if gate != nil {
			gate = []string{d.Gate}
		}
		if err := rows.Write(d.Decision, gate...); err != nil {
			return err
		}
	}
	return rows.Flush()
}

// summary says how much was found, and where the history ends.
func (s *session) summary(page *fleetsearch.Page) string {
	message := "Nothing found."
	if n := len(page.Decisions); n > 0 {
		message = text.Count(n, "decision", "decisions") + "."
	}
	if page.Incomplete && page.Gates != nil {
		message += " A gate has searched for too long and has given up, so there may be more: --since bounds it."
	} else if page.Incomplete {
		message += " The search took too long and was given up, so there may be more: --since bounds it."
	} else if page.Next != "" {
		message += " There are older ones: see --last and --since."
	}
	message += " " + reaches(page.Reach)
	if page.Fault != "" {
		message += " " + missesNewest(page.Fault)
	}
	if len(page.Decisions) == 0 && page.Reach != nil && s.config.Decisions.Record != config.RecordAll {
		message += ` Accepted messages of senders on no list are not in it ([decisions] record = "refused"); the log has them.`
	}
	return message
}

// reaches says how far back the history reaches.
func reaches(back *time.Time) string {
	if back == nil {
		return "The history is empty."
	}
	return "The history reaches back to " + back.Local().Format(time.DateTime) + "."
}

// maxNamed bounds the recipients that are named.
const maxNamed = 3

// printDecision prints a decision in a few lines.
func printDecision(w io.Writer, d *history.Decision, gate string) {
	what := d.Event
	if d.Action != "" && d.Action != "accept" && d.Action != "reject" {
		what += " (" + d.Action + ")"
	}
	if d.Count > 1 {
		what += fmt.Sprintf(", %s times until %s", text.Number(d.Count), d.Last.Local().Format(time.TimeOnly))
	}
	fmt.Fprintf(w, "%s  %-12s  %s\n", d.Time.Local().Format(time.DateTime), d.ID, what)
	if gate != "" {
		term.PrintWrapped(w, "  gate  ", gate)
	}
	from := angle(d.Sender)
	if d.Client != "" {
		from += " by " + d.Client
	}
	term.PrintWrapped(w, "  from  ", from)
	if to := recipients(d); to != "" {
		term.PrintWrapped(w, "  to    ", to)
	}
	if d.List != "" {
		term.PrintWrapped(w, "  list  ", because(d))
	}
	if d.Reply != "" {
		term.PrintWrapped(w, "  reply ", d.Reply)
	}
}

// angle returns an address in angle brackets.
func angle(address string) string {
	if address == "<>" {
		return address
	}
	return "<" + address + ">"
}

// recipients names the first recipients.
func recipients(d *history.Decision) string {
	var named []string
	for _, to := range d.Recipients[:min(maxNamed, len(d.Recipients))] {
		named = append(named, angle(to))
	}
	message := strings.Join(named, ", ")
	if more := len(d.Recipients) - len(named) + d.MoreRecipients; more > 0 {
		message += fmt.Sprintf(" and %s more", text.Number(more))
	}
	return message
}

// because names the list and the entry, and the sender that it matches if that is not the one of
// the envelope.
func because(d *history.Decision) string {
	text := d.List
	if d.Entry != "" {
		text += ": " + d.Entry
	}
	if d.Reason != "" {
		text += " (" + d.Reason + ")"
	}
	if judged := d.Attr("sender"); judged != "" {
		text += ", for " + angle(judged)
		if identity := d.Attr("identity"); identity != verdict.EnvelopeIdentity {
			text += " in " + identity
		}
	}
	return text
}
