package lists

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"spamgate/blocklist/listfile"
	"spamgate/internal/listcompare"
	"spamgate/internal/listfiles"
	"spamgate/internal/text"
)

func newListsOverlapCommand() *cobra.Command {
	var o listsFlags
	cmd := &cobra.Command{
		Use:   "overlap",
		Short: "Show which lists repeat each other",
		Long: `Count the entries that each pair of lists has in common, and the entries that a
broader entry of a list of the same type covers, as spam.example covers
user@spam.example. That list must be looked up wherever the other is, and do at
least as much: reject more than tag, tag more than monitor, an allow list with
override more than one without. Lists from different sources may repeat each
other for a good reason. "lists dedupe" removes what changes no decision.

Exceptions, expired entries and entries that the gate leaves out do not count,
nor do lists with per_recipient = true.
The command writes temporary indexes to disk (TMPDIR), so that lists may have
any length.

Exit codes: 0 success; 2 an error.`,
		Example: `  spamgate lists overlap
  spamgate lists overlap --list blocked --json`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVarP(&o.list, "list", "l", "", "compare only the list `NAME` with the others")
	o.addJSON(cmd)
	o.runs(cmd, func(s *session, _ []string) error { return listsOverlap(s) })
	return cmd
}

func listsOverlap(s *session) error {
	if s.list != "" {
		l, err := listfiles.Find(s.config, s.list)
		if err == nil {
			err = withoutSides(l, "such lists are not compared; spamgate lists find --for RECIPIENT shows what counts for one")
		}
		if err != nil {
			return err
		}
	}
	lists, key := listfiles.Readable(s.config, s.stderr), listfiles.NewKey()
	all := len(lists)
	lists = slices.DeleteFunc(lists, func(l *listfiles.List) bool {
		if l.PerRecipient {
			fmt.Fprintf(s.stderr, "spamgate: left out: list %s, whose entries count for some recipients\n", l.Name)
		}
		return l.PerRecipient
	})
	left := all - len(lists)
	if len(lists) == 0 {
		return errors.New("no list can be compared")
	}
	p, guarded := listcompare.NewOverlap(lists, key), listfiles.NewProtection(s.config)
	scan := listfiles.NewScan(s, lists, s.stderr)
	defer scan.Bar.Finish()
	for _, l := range lists {
		seg, err := listfiles.Segment(scan, l, key, func(e listfile.Entry) bool { return guarded.LeftOut(l, e).Omitted() })
		if err != nil {
			return err
		}
		p.Add(seg)
	}
	if err := p.Compare(s, func(done float64) { scan.Bar.Bar.Show(done, "comparing") }); err != nil {
		return err
	}
	scan.Bar.Finish()
	report := p.Report(s.list)
	err := s.print(report, func(w io.Writer) { printOverlap(w, report) })
	if err == nil && len(lists)+left < len(listfiles.WithFiles(s.config)) {
		err = listfiles.ErrIncomplete
	}
	return err
}

func printOverlap(w io.Writer, r *listcompare.OverlapReport) {
	for _, l := range r.Lists {
		fmt.Fprintf(w, "%s (%s): %s", l.List, l.Type, text.Count(int(l.Entries), "entry", "entries"))
		if l.Repeated > 0 {
			fmt.Fprintf(w, ", and %s of them again", text.Count(int(l.Repeated), "line", "lines"))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, "\nIn two lists:")
	if len(r.Common) == 0 {
		fmt.Fprintln(w, "  none")
	}
	for _, c := range r.Common {
		fmt.Fprintf(w, "  %d in %s and %s: %.1f%% of %s, %.1f%% of %s\n", c.Entries, c.A, c.B, c.OfA, c.A, c.OfB, c.B)
		for _, example := range c.Examples {
			fmt.Fprintf(w, "    %s\n", example)
		}
	}
	fmt.Fprintln(w, "\nCovered by a broader entry of the same type:")
	if len(r.Within) == 0 {
		fmt.Fprintln(w, "  none")
	}
	for _, c := range r.Within {
		fmt.Fprintf(w, "  %d of %s (%.1f%%) by %s\n", c.Entries, c.List, c.Percent, c.By)
		for _, example := range c.Examples {
			fmt.Fprintf(w, "    %s by %s\n", example.Entry, example.By)
		}
	}
}
