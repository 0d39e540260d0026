package versions

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/segment"
	"spamgate/internal/cli"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/listcompare"
	"spamgate/internal/listfiles"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

type listsDiffOptions struct {
	session.Flags
	session.FormatFlags
	from, to string
}

func newListsDiffCommand() *cobra.Command {
	var o listsDiffOptions
	cmd := &cobra.Command{
		Use:   "diff LIST [--from VERSION [--to VERSION]] | OLD NEW",
		Short: "Show which entries were added, removed and changed",
		Long: `Show which entries were added, removed and changed: of one list since it last
went live, which is what a held update would do, or between two files. For a
list, OLD is the version that went live last (or --from), and NEW is the content
on disk, held or not (or --to). spamgate lists rollback LIST --list-versions
shows the versions.

Entries are compared by their meaning: order, spelling and comment lines do not
count, and files may have different formats; "-" is standard input. Each
difference is a line:

  + ENTRY  # REASON       in NEW only
  - ENTRY  # REASON       in OLD only
  ~ ENTRY  # REASON       in both, with another comment, end or exception (!);
                          the next line, with "was", has the entry of OLD

Expired entries do not count, nor do entries that the gate leaves out: protected
domains, and <> and name@ in a list from a URL. All differences are counted; up
to a million are shown.

Exit codes: 0 the same entries; 1 there are differences; 2 an error.`,
		Example: `  spamgate lists diff blocked
  spamgate lists diff lists/blocked.txt new.txt
  spamgate lists diff --format hosts yesterday.txt today.txt --json`,
		Args: func(cmd *cobra.Command, args []string) error { return o.check(cmd, args) },
	}
	o.FormatFlags.Add(cmd)
	o.AddMatching(cmd)
	o.AddPerRecipient(cmd)
	cmd.Flags().StringVar(&o.from, "from", "", "of a list: compare with this `VERSION`\n(default: the one that went live last)")
	cmd.Flags().StringVar(&o.to, "to", "", "of a list: compare --from with this `VERSION`\n(default: what is on disk now)")
	o.AddJSON(cmd)
	o.RunsIf(cmd, func(args []string) bool { return len(args) == 1 }, func(s *session.Session, args []string) error { return listsDiff(s, o, args) })
	return cmd
}

// check accepts one list or two files, with the flags that fit them.
func (o *listsDiffOptions) check(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 || len(args) > 2:
		return errors.New("name one list, as spamgate lists status shows them, or two files, OLD and NEW")
	case len(args) == 2 && o.from+o.to != "":
		return errors.New("--from and --to go with the name of one list, not with files")
	case len(args) == 1 && o.to != "" && o.from == "":
		return errors.New("--to goes with --from")
	case len(args) == 1 && o.FormatChanged(cmd) != "":
		return fmt.Errorf("--%s goes with two files: a list is read as the configuration says", o.FormatChanged(cmd))
	}
	return nil
}

func listsDiff(s *session.Session, o listsDiffOptions, args []string) error {
	key := listfiles.NewKey()
	var sides [2]*side
	var err error
	if len(args) == 1 {
		var pair *listSides
		if pair, err = newListSides(s, args[0], o.to == "", key); err == nil {
			sides[0], sides[1], err = pair.choose(o.from, o.to)
		}
	} else {
		sides, err = fileSides(s, o, args, key)
	}
	if err != nil {
		return err
	}
	var segments [2]*segment.Segment
	for i, side := range sides {
		if segments[i], err = side.read(); err != nil {
			return err
		}
	}
	report := &listcompare.Diff{Old: sides[0].name, New: sides[1].name, Differences: []listcompare.Difference{}}
	if err := report.Compare(segments[0], segments[1], key); err != nil {
		return err
	}
	report.Protected, report.Disallowed = int(sides[1].protected.Load()), int(sides[1].disallowed.Load())
	if err := s.Print(report, func(w io.Writer) { printDiff(w, report) }); err != nil {
		return err
	}
	if len(report.Differences) > 0 {
		return cli.ErrNo
	}
	return nil
}

// fileSides returns two files as the sides to be compared.
func fileSides(s *session.Session, o listsDiffOptions, paths []string, key *segment.Key) (sides [2]*side, err error) {
	options, err := o.FormatFlags.Options()
	if err != nil {
		return sides, err
	}
	if paths[0] == "-" && paths[1] == "-" {
		return sides, errors.New("only one of the files can be standard input")
	}
	bar := term.NewFileProgress(s.Stderr, paths...)
	for i, path := range paths {
		sides[i] = &side{name: path, read: func() (*segment.Segment, error) {
			if i == 1 {
				defer bar.Finish()
			}
			return readSide(s, path, options, key, bar)
		}}
	}
	return sides, nil
}

// readSide reads one of the files, and reports invalid lines on standard error.
func readSide(s *session.Session, path string, o listfile.Options, key *segment.Key, bar *term.FileProgress) (*segment.Segment, error) {
	in, err := listfiles.OpenInput(s, s.Cmd.InOrStdin(), path, bar)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b := listfiles.NewBuilder(s, key)
	defer b.Builder.Abort()
	result, err := b.Add(in, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.Path, err)
	}
	if result.Invalid+result.Unsupported > 0 {
		fmt.Fprintf(s.Stderr, "spamgate: %s: %s; see spamgate lists lint\n", in.Path, session.NewReadReport(result).Describe())
	}
	return b.Finish()
}

func printDiff(w io.Writer, d *listcompare.Diff) {
	for _, difference := range d.Differences {
		switch difference.What {
		case "went":
			fmt.Fprintf(w, "- %s\n", asLine(difference.Old))
		case "came":
			fmt.Fprintf(w, "+ %s\n", asLine(difference.New))
		default:
			fmt.Fprintf(w, "~ %s\n  was %s\n", asLine(difference.New), asLine(difference.Old))
		}
	}
	if more := d.Came + d.Went + d.Changed - len(d.Differences); more > 0 {
		fmt.Fprintf(w, "... and %d more\n", more)
	}
	fmt.Fprintf(w, "%d came, %d went, %d changed, %d are the same\n", d.Came, d.Went, d.Changed, d.Same)
	if d.Protected > 0 {
		fmt.Fprintf(w, "not counted: %s of %s that the list leaves out: protected names\n", text.Count(d.Protected, "entry", "entries"), d.New)
	}
	if d.Disallowed > 0 {
		fmt.Fprintf(w, "not counted: %s of %s that the list leaves out: <> and name@\n", text.Count(d.Disallowed, "entry", "entries"), d.New)
	}
}

// asLine formats an entry as a list has it.
func asLine(e *listfiles.EntryInfo) string {
	return listfile.Line{Text: e.Text(), Until: e.Until, Reason: e.Reason, Note: e.Note}.String()
}
