package edit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"spamgate/blocklist/listfile"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/cli/local"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/term"
)

type listsMoveOptions struct {
	session.Flags
	from, to string
}

func newListsMoveCommand() *cobra.Command {
	var o listsMoveOptions
	cmd := &cobra.Command{
		Use:   "move ENTRY... --from NAME --to NAME",
		Short: "Move entries from one list to another",
		Long: `Move entries to another list, with their reason, their end (until=) and their
private note. What an entry then does is up to that list: its type and action.

The command writes the other list first, and then removes the entries from the
first one. If that fails, they are in both lists, and the error says so. If one
of several entries is not found, or the other list has it with another comment,
nothing is changed.

Exit codes: 0 the entries are moved; 2 an error, and nothing has changed unless
the error says so.`,
		Example: `  spamgate lists move spam.example --from watched --to blocked
  spamgate lists move spam.example --from blocked --to watched --dry-run`,
		Args: needEntries,
	}
	cmd.Flags().StringVar(&o.from, "from", "", "the `NAME` of the list that has the entries (required)")
	cmd.Flags().StringVar(&o.to, "to", "", "the `NAME` of the list where they go (required)")
	cmd.Flags().StringVar(&o.File, "file", "", "the `FILE` of that list, if it has several\n(default: the first)")
	o.AddFor(cmd, forEntries)
	o.AddChange(cmd, session.ForAudit)
	o.Runs(cmd, func(s *session.Session, args []string) error { return listsMove(s, o, args) })
	return cmd
}

// moveReport is the output of move.
type moveReport struct {
	From    string        `json:"from"`
	To      string        `json:"to"`
	File    string        `json:"file"` // of the list To
	DryRun  bool          `json:"dry_run"`
	Entries []movedEntry  `json:"entries"`
	Gate    *local.Answer `json:"gate,omitempty"`
}

// movedEntry describes the move of one entry.
type movedEntry struct {
	listfiles.EntryInfo                       // in the list To
	What                string                `json:"what"`
	Meaning             string                `json:"meaning"`
	Removed             []listfiles.EntryInfo `json:"removed"`
}

func listsMove(s *session.Session, o listsMoveOptions, args []string) error {
	from, to, err := listsToMove(s, o)
	if err != nil {
		return err
	}
	file, err := session.FileToEdit(to, o.File)
	if err != nil {
		return err
	}
	entries, err := checkEntries(sided(s, args), from.Options)
	if err != nil {
		return err
	}
	found, err := findAll(s, from, entries)
	if err != nil {
		return err
	}
	moved, err := movedEntries(s, to, entries, found)
	if err != nil {
		return err
	}
	s.Reason = cmp.Or(strings.TrimSpace(s.Reason), fmt.Sprintf("moved from list %s to list %s", from.Name, to.Name))
	additions, err := (&entryEdit{s.Edit(to, file)}).moveHere(s, moved)
	if err != nil {
		return err
	}
	for i, path := range found.files {
		if _, err := (&entryEdit{s.Edit(from, path)}).remove(s, entries); err != nil {
			return stillThere(err, s.DryRun, from, to, entries, found.files[:i])
		}
	}
	report := &moveReport{From: from.Name, To: to.Name, File: file, DryRun: o.DryRun}
	for i, a := range additions {
		a.New.Line = a.Line
		report.Entries = append(report.Entries, movedEntry{listfiles.NewEntryInfo(to.Name, file, a.New), a.What, meaning(a.New), found.lines[i]})
	}
	if report.Gate = s.Rescan(from.Name); report.Gate != nil && report.Gate.Error == "" {
		report.Gate = s.Rescan(to.Name)
	}
	return s.PrintChange(report, report.print)
}

// listsToMove returns the two lists, which have to be different ones that can be changed.
func listsToMove(s *session.Session, o listsMoveOptions) (from, to *listfiles.List, err error) {
	if o.from == "" || o.to == "" {
		return nil, nil, fmt.Errorf("name both lists: --from NAME --to NAME; %s", session.HowToWrite(s.Config))
	}
	if o.from == o.to {
		return nil, nil, fmt.Errorf("--from and --to are both %s: name two lists", o.from)
	}
	if from, err = session.WritableList(s.Config, o.from, "", false); err == nil {
		to, err = session.WritableList(s.Config, o.to, "", false)
	}
	switch {
	case err != nil:
	case from.PerRecipient != to.PerRecipient:
		list, other := from, to
		if to.PerRecipient {
			list, other = to, from
		}
		err = fmt.Errorf("each entry of list %s counts for some recipients, and those of list %s for all: remove the entries from the one and add them to the other", list.Name, other.Name)
	default:
		err = checkSides(s, from)
	}
	return from, to, err
}

// movedEntries returns the entries as the other list writes them, with the comments of
// their lines. Of several lines of an entry the first comment is taken, and the latest end.
func movedEntries(s *session.Session, to *listfiles.List, entries []listfile.Entry, found *findings) ([]listfile.Line, error) {
	guarded := listfiles.NewProtection(s.Config)
	moved := make([]listfile.Line, len(entries))
	var errs []error
	for i, e := range entries {
		lines := found.lines[i]
		n := listfile.Line{Text: listfile.Text(e, to.Options), Reason: lines[0].Reason, Note: lines[0].Note, Until: lines[0].Until}
		for _, line := range lines[1:] {
			if n.Until != "" && (line.Until == "" || line.Until > n.Until) {
				n.Until = line.Until
			}
		}
		moved[i] = n
		written, err := n.Parse(to.Options)
		switch {
		case n.Text == "":
			_, err = listfile.ParseEntry(listfiles.Written(e), to.Options)
			err = fmt.Errorf("list %s cannot have the entry %s: %w", to.Name, listfiles.Written(e), cmp.Or(err, errors.New("there is no way to write it")))
		case err == nil && written.Until != 0 && written.Until <= time.Now().Unix():
			err = fmt.Errorf("%s has ended (%s): remove it instead", listfiles.Written(e), n.Until)
		case err == nil:
			err = guarded.Check(to, written)
		}
		errs = append(errs, err)
	}
	return moved, errors.Join(errs...)
}

// moveHere adds the entries to a list that has none of them, or the same lines.
func (e *entryEdit) moveHere(ctx context.Context, entries []listfile.Line) (additions []listedit.Addition, err error) {
	_, err = e.Rewrite(ctx, func(old io.ReadSeeker, w io.Writer) error {
		var err error
		additions, err = e.addLines(old, w, entries)
		var conflicts []error
		for _, a := range additions {
			conflicts = append(conflicts, e.conflict(a))
		}
		if conflict := errors.Join(conflicts...); conflict != nil {
			return conflict
		}
		return err
	})
	return additions, err
}

// conflict returns the error for an entry that the list has otherwise.
func (e *entryEdit) conflict(a listedit.Addition) error {
	switch a.What {
	case listedit.Refused:
		return e.cancelled(a)
	case listedit.Updated:
		return fmt.Errorf("%s is in list %s already, with another comment, at %s:%d%s; remove one of the two",
			listfiles.Written(a.New), e.List.Name, term.ShortPath(e.File), a.Was.Line, term.InBrackets(a.Was.Reason))
	}
	return nil
}

// stillThere adds to the error of a removal where the entries are now.
func stillThere(err error, dryRun bool, from, to *listfiles.List, entries []listfile.Entry, changed []string) error {
	if dryRun {
		return err
	}
	commands := make([]string, len(entries))
	for i, e := range entries {
		commands[i] = "spamgate lists remove " + asArguments(e) + " --list " + from.Name
	}
	done := ""
	if len(changed) > 0 {
		done = " (they are removed from " + session.ShortenAll(changed) + ")"
	}
	return fmt.Errorf("the entries are in list %s now, and were not removed from list %s%s: %w; then run: %s",
		to.Name, from.Name, done, err, strings.Join(commands, "; "))
}

func (r *moveReport) print(w io.Writer) {
	phrase := session.Would(r.DryRun)
	for _, e := range r.Entries {
		switch e.What {
		case listedit.Present, listedit.Twice:
			fmt.Fprintf(w, "%s: %sremoved from list %s; list %s has it already\n", e.Text(), phrase, r.From, r.To)
		default:
			fmt.Fprintf(w, "%s: %smoved from list %s to list %s, %s\n", e.Text(), phrase, r.From, r.To, e.Place())
			fmt.Fprintf(w, "  %s%s\n", e.Meaning, term.InBrackets(e.Reason))
		}
		if e.Until != "" {
			fmt.Fprintf(w, "  until %s\n", e.Until)
		}
	}
	session.PrintOutcome(w, r.DryRun, true, r.Gate)
}
