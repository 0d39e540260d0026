package lists

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"spamgate/internal/cli"
	"spamgate/internal/config"
	"spamgate/internal/listcompare"
	"spamgate/internal/listfiles"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

func newListsOverlapCommand() *cobra.Command {
	var o listsFlags
	cmd := &cobra.Command{
		Use:   "overlap",
		Short: "Say which lists repeat each other",
		Long: `Say how many entries each two lists have in common, and how many entries match
nothing that a broader entry of a list of the same type does not match already:
user@spam.example beside spam.example. Lists with different actions, or of which
one is under your hand and one is not, may repeat each other for a reason.

Exceptions, and entries whose time is over, do not count. A list is compared in
the memory of an index on disk (TMPDIR), however long it is.

Exit codes: 0 compared; 2 an error.`,
		Example: `  spamgate lists overlap
  spamgate lists overlap --list blocked --json`,
		Args: cobra.NoArgs,
	}
	o.config = cli.ConfigFlag(cmd)
	cmd.Flags().StringVarP(&o.list, "list", "l", "", "compare the list of this `NAME` with the others alone")
	o.addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := listsOverlap(cmd, o); err != nil {
			return fmt.Errorf("lists overlap: %w", err)
		}
		return nil
	}
	return cmd
}

func listsOverlap(cmd *cobra.Command, o listsFlags) error {
	c, err := config.Load(*o.config)
	if err != nil {
		return err
	}
	if o.list != "" {
		if _, err := listfiles.Find(c, o.list); err != nil {
			return err
		}
	}
	ctx, stop := cli.Interruptible(cmd)
	defer stop()
	lists, key := listfiles.Readable(c, cmd.ErrOrStderr()), listfiles.NewKey()
	if len(lists) == 0 {
		return errors.New("no list can be read")
	}
	p := listcompare.NewOverlap(lists, key)
	s := listfiles.NewScan(ctx, lists, cmd.ErrOrStderr())
	defer s.Bar.Finish()
	for _, l := range lists {
		seg, err := listfiles.Segment(s, l, key, nil)
		if err != nil {
			return err
		}
		p.Add(seg)
	}
	if err := p.Compare(ctx, func(done float64) { s.Bar.Bar.Show(done, "comparing") }); err != nil {
		return err
	}
	s.Bar.Finish()
	report := p.Report(o.list)
	out := bufio.NewWriter(term.Escape(cmd.OutOrStdout()))
	if o.json {
		err = cli.PrintJSON(out, report)
	} else {
		printOverlap(out, report)
	}
	if err = errors.Join(err, out.Flush()); err == nil && len(lists) < len(c.Lists) {
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
