package look

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"spamgate/blocklist/listfile"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/cli/local"
	"spamgate/internal/listcompare"
	"spamgate/internal/listfiles"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

func newListsCompareCommand() *cobra.Command {
	var o session.Flags
	c := &comparison{}
	cmd := &cobra.Command{
		Use:   "compare [--list NAME] [--remove]",
		Short: "Show which lists repeat each other, and remove what is superfluous",
		Long: `Count the entries that each pair of lists has in common, and the entries that a
broader entry of a list of the same type covers, as spam.example covers
user@spam.example. That list must be looked up wherever the other is, and do at
least as much: reject more than tag, tag more than monitor, an allow list with
override more than one without. Exceptions, expired entries, entries that the
gate leaves out and lists with per_recipient = true do not count.

Then name the superfluous entries, without which every sender's address is
decided as before: with the same action, at each stage and listener, now and
when entries expire. Such an entry is repeated, or a broader entry covers it,
and no exception or opposite list comes between. --remove removes them.

The reply and the log then name the other entry with its reason. Tags and logs
of lists that monitor keep their list. In headers, what only looks like an
address (in a display name) is looked up by entries of whole addresses, so
there a broader entry does not count.

Lists from a URL make nothing superfluous unless --fetched is given, since their
next update may remove an entry. They are never changed, nor are packed files
and other formats: the command names them. It removes nothing while a list is
held, pinned with changes waiting, or unreadable. In lists with
per_recipient = true only expired entries are superfluous.

The command writes temporary indexes to disk (TMPDIR), so that lists may have
any length.

Exit codes: 0 success; 2 an error.`,
		Example: `  spamgate lists compare
  spamgate lists compare --list blocked --json
  spamgate lists compare --list blocked --expired --remove --reason "cleaning"`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVarP(&o.List, "list", "l", "", "only the list `NAME` with the others")
	cmd.Flags().BoolVar(&c.remove, "remove", false, "remove the superfluous entries")
	cmd.Flags().BoolVar(&c.expired, "expired", false, "expired entries and exceptions are superfluous, too")
	cmd.Flags().BoolVar(&c.fetched, "fetched", false, "let entries of lists from a URL make others superfluous")
	cmd.Flags().StringVarP(&o.Reason, "reason", "r", "", session.ForAudit)
	o.AddJSON(cmd)
	o.Runs(cmd, func(s *session.Session, _ []string) error {
		c.Session = s
		files, err := c.find()
		if c.remove {
			if err != nil {
				return fmt.Errorf("nothing is removed: %w", err)
			}
			err = c.change(files)
		}
		if err != nil && c.report.OverlapReport == nil {
			return err
		}
		return errors.Join(s.PrintChange(&c.report, c.print), err)
	})
	return cmd
}

// comparison is one run of compare.
type comparison struct {
	*session.Session
	remove, expired, fetched bool

	lists  []*listfiles.List
	finder *listcompare.Superfluous
	report compareReport
}

// compareReport is the output of compare.
type compareReport struct {
	*listcompare.OverlapReport // nil with --remove

	Superfluous []superfluousEntry `json:"superfluous"`       // nil: not known, since a list could not be read
	Skipped     []string           `json:"skipped,omitempty"` // lists and files that are not changed, with the reason
	Removed     bool               `json:"removed,omitempty"` // the superfluous ones
	Gate        *local.Answer      `json:"gate,omitempty"`
}

// find compares the lists, and finds the superfluous entries.
func (c *comparison) find() ([]*superfluousFile, error) {
	if c.List != "" {
		if _, err := listfiles.Find(c.Config, c.List); err != nil {
			return nil, err
		}
	}
	if c.remove {
		if err := c.checkLive(); err != nil {
			return nil, err
		}
	}
	c.lists = listfiles.Readable(c.Config, c.Stderr)
	if len(c.lists) == 0 {
		return nil, errors.New("no list can be compared")
	}
	if err := c.read(); err != nil {
		return nil, err
	}
	if len(c.lists) < len(listfiles.WithFiles(c.Config)) {
		return nil, listfiles.ErrIncomplete
	}
	files, err := c.superfluous()
	if err != nil {
		return nil, err
	}
	c.report.Superfluous, c.report.Removed = []superfluousEntry{}, c.remove
	for _, f := range files {
		c.report.Superfluous = append(c.report.Superfluous, f.entries...)
	}
	return files, nil
}

// read reads all lists, and compares them.
func (c *comparison) read() error {
	key, guarded := listfiles.NewKey(), listfiles.NewProtection(c.Config)
	var compared []*listfiles.List
	for _, l := range c.lists {
		if l.PerRecipient {
			fmt.Fprintf(c.Stderr, "spamgate: not compared: list %s, whose entries count for some recipients\n", l.Name)
		} else {
			compared = append(compared, l)
		}
	}
	c.finder = listcompare.NewSuperfluous(c.Config, key, c.fetched)
	overlap := listcompare.NewOverlap(compared, key)
	scan := listfiles.NewScan(c, c.lists, c.Stderr)
	defer scan.Bar.Finish()
	for _, l := range c.lists {
		segment, err := c.finder.Add(scan, l, func(e listfile.Entry) bool { return guarded.LeftOut(l, e).Omitted() })
		if err != nil {
			return err
		}
		if !l.PerRecipient {
			overlap.Add(segment)
		}
	}
	if c.remove {
		return nil // the report is about what was removed
	}
	if err := overlap.Compare(c, func(done float64) { scan.Bar.Bar.Show(done, "comparing") }); err != nil {
		return err
	}
	c.report.OverlapReport = overlap.Report(c.List)
	return nil
}

func (c *comparison) print(w io.Writer) {
	r := &c.report
	if r.OverlapReport != nil {
		printOverlap(w, r.OverlapReport)
		fmt.Fprintln(w, "\nSuperfluous:")
	}
	if r.Superfluous == nil {
		fmt.Fprintln(w, "  not known, since a list could not be read")
		return
	}
	for i := range r.Superfluous {
		e := &r.Superfluous[i]
		term.PrintWrapped(w, e.Place()+": ", fmt.Sprintf("%s: %s", e.Text(), e.why()))
	}
	for _, s := range r.Skipped {
		term.PrintWrapped(w, "skipped: ", s)
	}
	n := text.Count(len(r.Superfluous), "entry", "entries")
	if !c.remove {
		fmt.Fprintln(w, n+" would be removed by --remove")
		return
	}
	fmt.Fprintf(w, "%s removed\n", n)
	session.PrintOutcome(w, false, len(r.Superfluous) > 0, r.Gate)
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
