package edit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/blocklist/listfile"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

func newListsRemoveCommand() *cobra.Command {
	var o session.Flags
	cmd := &cobra.Command{
		Use:   "remove ENTRY... [--list NAME] [--reason TEXT]",
		Short: "Remove entries from a list",
		Long: `Remove entries, whatever their spelling in the list: both Spam.Example. and
.spam.example remove spam.example. Every line of the entry is removed with its
comment. The output names other entries that still match the same senders.

Without --list the command searches every list that can be changed: with --for
those with per_recipient = true, else the others. If the entry is in several,
name one of them.

If one of several entries is not found, none is removed. For those of a file:
xargs spamgate lists remove.

Exit codes: 0 the entries are removed; 2 an error, and nothing has changed
unless the error says so (a list may have several files).`,
		Example: `  spamgate lists remove spam.example --reason "they have stopped"
  spamgate lists remove @shop.example --for ann@example.net
  spamgate lists remove '!press@spam.example' --list blocked --dry-run`,
		Args: needEntries,
	}
	cmd.Flags().StringVarP(&o.List, "list", "l", "", "the `NAME` of the list")
	o.AddFor(cmd, forEntries)
	o.AddChange(cmd, session.ForAudit)
	o.Runs(cmd, listsRemove)
	return cmd
}

// removeReport is the output of remove.
type removeReport struct {
	List    string         `json:"list"`
	DryRun  bool           `json:"dry_run"`
	Entries []removedEntry `json:"entries"`
	Gate    *local.Answer  `json:"gate,omitempty"`
}

// removedEntry describes the removal of one entry.
type removedEntry struct {
	Entry     string                `json:"entry"`
	Removed   []listfiles.EntryInfo `json:"removed"`
	CoveredBy []listfiles.EntryInfo `json:"still_covered_by,omitempty"`
	Within    []listfiles.EntryInfo `json:"still_matching,omitempty"` // some of the senders that it matched
	More      int                   `json:"more_matching,omitempty"`  // such entries
}

func listsRemove(s *session.Session, args []string) error {
	if err := session.CheckFor(s.Recipient); err != nil {
		return err
	}
	args = sided(s, args)
	list, err := listToRemoveFrom(s, args)
	if err != nil {
		return err
	}
	if ran, err := s.AsOwner(list.Managed); ran || err != nil {
		return err
	}
	entries, err := checkEntries(args, list.Options)
	if err != nil {
		return err
	}
	found, err := findAll(s, list, entries)
	if err != nil {
		return err
	}
	report := &removeReport{List: list.Name, DryRun: s.DryRun}
	for i, e := range entries {
		report.Entries = append(report.Entries, removedEntry{Entry: listfiles.Written(e), Removed: found.lines[i]})
	}
	var edits []listfiles.Edit
	for i, file := range found.files {
		e := &entryEdit{s.Edit(list, file)}
		removed, err := e.remove(s, entries)
		edits = append(edits, listfiles.Edit{Path: file, Removed: removed})
		if err != nil {
			return s.ChangedBefore(err, found.files[:i])
		}
	}
	if s.DryRun || list.Managed { // the gate has a new index already
		edits = nil
	}
	if err := stillCovered(s, list, entries, edits, report); err != nil {
		if s.DryRun {
			return err
		}
		listfiles.RelationsUnknown(s.Stderr, err)
	}
	report.Gate = s.Rescan(list.Name)
	return s.PrintChange(report, report.print)
}

// remove removes the entries from one file, and returns the lines that they had there; of a managed
// list, which has a new index then, none.
func (e *entryEdit) remove(ctx context.Context, entries []listfile.Entry) (lines []int, err error) {
	if e.List.Managed {
		return nil, e.removeManaged(ctx, entries)
	}
	_, err = e.Rewrite(ctx, func(old io.ReadSeeker, w io.Writer) error {
		removals, err := listedit.Remove(old, w, e.List.Options, entries)
		var words []string
		for _, r := range removals {
			if len(r.Removed) > 0 {
				words = append(words, "removed "+listfiles.Written(r.Entry))
			}
			for _, removed := range r.Removed {
				lines = append(lines, removed.Line)
			}
		}
		e.Describe(words)
		return err
	})
	return lines, err
}

// listToRemoveFrom returns the named list, or else the only list that has the entries and
// can be changed.
func listToRemoveFrom(s *session.Session, args []string) (*listfiles.List, error) {
	if s.List != "" {
		l, err := session.WritableList(s.Config, s.List, "block", false)
		if err == nil {
			err = checkSides(s, l)
		}
		return l, err
	}
	if s.Recipient != "" && !slices.ContainsFunc(s.Config.Lists, func(l config.List) bool { return l.PerRecipient }) {
		return nil, fmt.Errorf("no list is by recipient (per_recipient = true), so --for has no effect: remove it, or %s", session.HowToSide(s.Config))
	}
	var having []*listfiles.List
	var first error
	valid := false // for one of the lists; allow lists have no exceptions
	for _, l := range s.Config.Lists {
		list, err := listfiles.New(l)
		if !list.Writable() || err != nil || l.PerRecipient != (s.Recipient != "") {
			continue
		}
		entries, err := checkEntries(args, list.Options)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		valid = true
		found, err := find(s, list, entries)
		if err != nil {
			return nil, err
		}
		if len(found.files) > 0 {
			having = append(having, list)
		}
	}
	switch {
	case len(having) == 1:
		return having[0], nil
	case len(having) > 1:
		names := make([]string, len(having))
		for i, l := range having {
			names[i] = l.Name
		}
		return nil, fmt.Errorf("it is in the lists %s: say which one is meant with --list NAME", strings.Join(names, ", "))
	case first != nil && !valid:
		return nil, first
	}
	entries, err := checkEntries(args, listfile.Options{AllowPublicSuffix: true, PerRecipient: s.Recipient != ""})
	if err == nil {
		err = notListed(s, nil, entries)
	}
	return nil, err
}

// findIn finds the entries in one file.
func findIn(s *session.Session, l *listfiles.List, file string, entries []listfile.Entry) ([]listedit.Removal, error) {
	f, err := setup.Opener(l.List).Open(file)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", l.Name, listfiles.WithAuthority(err, listfiles.WhoOwns))
	}
	defer f.Close()
	in := session.Indexed(listfiles.Stoppable(s, f), f, s.Indexes().Of(l), file)
	removals, err := listedit.Find(in, l.Options, entries)
	if err != nil {
		return nil, fmt.Errorf("list %s: %s: %w", l.Name, term.ShortPath(file), err)
	}
	return removals, nil
}

// findings are the lines of a list that have some entries.
type findings struct {
	lines [][]listfiles.EntryInfo // of each entry
	files []string                // that have any
}

// find finds the entries in the files of a list.
func find(s *session.Session, l *listfiles.List, entries []listfile.Entry) (*findings, error) {
	f := &findings{lines: make([][]listfiles.EntryInfo, len(entries))}
	for _, file := range l.Paths {
		removals, err := findIn(s, l, file, entries)
		if err != nil {
			return nil, err
		}
		has := false
		for i, r := range removals {
			for _, e := range r.Removed {
				f.lines[i] = append(f.lines[i], listfiles.NewEntryInfo(l.Name, file, e))
				has = true
			}
		}
		if has {
			f.files = append(f.files, file)
		}
	}
	return f, nil
}

// findAll is find with an error if an entry is missing.
func findAll(s *session.Session, l *listfiles.List, entries []listfile.Entry) (*findings, error) {
	f, err := find(s, l, entries)
	if err != nil {
		return nil, err
	}
	var missing []listfile.Entry
	for i, e := range entries {
		if len(f.lines[i]) == 0 {
			missing = append(missing, e)
		}
	}
	return f, notListed(s, l, missing)
}

// notListed returns an error for entries that are not in the list, with what to do instead,
// or nil if there are none.
func notListed(s *session.Session, l *listfiles.List, entries []listfile.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	relations, err := relationsOf(s, entries, nil)
	if err != nil {
		return err
	}
	searched := session.WritableNames(s.Config, func(l config.List) bool { return l.PerRecipient == (s.Recipient != "") })
	var errs []error
	for _, e := range entries {
		what := "is not in a list that can be changed (" + strings.Join(searched, ", ") + ")"
		if l != nil {
			what = "is not in list " + l.Name
		}
		var hints []string
		for _, f := range relations.Same(e) {
			if l != nil && f.List.Name == l.Name {
				continue // an exception to it, or what it is an exception to
			}
			hints = append(hints, "list "+f.List.Name+" has it ("+f.At().Place()+")"+howToUndo(f))
		}
		for _, f := range relations.Covering(e) {
			hint := "it is covered by " + f.At().String() + howToUndo(f)
			if f.List.Type == "block" && f.List.Writable() {
				x := e
				x.Exception, x.For = true, ""
				if f.List.PerRecipient {
					x.For = e.For
				}
				hint += "; or keep that and add an exception: spamgate lists add " + asArguments(x) + " --list " + f.List.Name
			}
			hints = append(hints, hint)
		}
		switch some, more := relations.Within(e); {
		case len(hints) > 0:
			what += "; " + hints[0]
		case len(some) > 0:
			what += "; nothing covers it, but senders there are matched by " + some[0].At().String() + howToUndo(some[0])
			if more += len(some) - 1; more > 0 {
				what += fmt.Sprintf(", and by %s: spamgate lists find %s", text.Count(more, "other entry", "other entries"), term.ShellWord(listfiles.DomainOf(e)))
			}
		default:
			what += "; nothing covers it either"
			if s.Recipient == "" && slices.ContainsFunc(s.Config.Lists, func(l config.List) bool { return l.PerRecipient }) {
				what += "; for an entry that counts for some recipients, say for whom with --for"
			}
		}
		errs = append(errs, fmt.Errorf("%s %s", listfiles.Written(e), what))
	}
	return errors.Join(errs...)
}

// relationsOf reads the entries of all lists that are related to some entries.
func relationsOf(s *session.Session, entries []listfile.Entry, edits []listfiles.Edit) (*listfiles.Relations, error) {
	relations := listfiles.NewRelations()
	ask := relations.AskWithin
	if len(entries) > maxWithin {
		ask = relations.Ask
	}
	for _, e := range entries {
		ask(e)
	}
	return relations, relations.Read(s, listfiles.Readable(s.Config, s.Stderr), s.Indexes(), edits, s.Stderr)
}

// maxWithin is the most entries for which others are shown that match some of their
// senders: each takes a pass through all lists.
const maxWithin = 20

// howToUndo says what to do about an entry in another list.
func howToUndo(f listfiles.Located) string {
	switch {
	case f.List.Writable():
		return ": spamgate lists remove " + asArguments(f.Entry) + " --list " + f.List.Name
	case f.List.Type == "block":
		return ", which cannot be changed here: add it to an allow list"
	}
	return ", which cannot be changed here"
}

// stillCovered adds to the report which entries still match.
func stillCovered(s *session.Session, l *listfiles.List, entries []listfile.Entry, edits []listfiles.Edit, report *removeReport) error {
	relations, err := relationsOf(s, entries, edits)
	if err != nil {
		return err
	}
	for i, e := range entries {
		if e.Exception {
			continue
		}
		for _, f := range append(relations.Same(e), relations.Covering(e)...) {
			if f.List.Type == l.Type && (f.List.Name != l.Name || listedit.Key(f.Entry) != listedit.Key(e)) {
				report.Entries[i].CoveredBy = append(report.Entries[i].CoveredBy, f.At())
			}
		}
		some, more := relations.Within(e)
		for _, f := range some {
			switch {
			case f.List.Type != l.Type:
			case len(report.Entries[i].Within) < maxCovered:
				report.Entries[i].Within = append(report.Entries[i].Within, f.At())
			default:
				more++
			}
		}
		report.Entries[i].More = more
	}
	return nil
}

func (r *removeReport) print(w io.Writer) {
	phrase := session.Would(r.DryRun)
	for _, e := range r.Entries {
		for _, entryInfo := range e.Removed {
			fmt.Fprintf(w, "%s: %sremoved from list %s, %s:%d%s\n", e.Entry, phrase, r.List, term.ShortPath(entryInfo.File), entryInfo.Line, term.InBrackets(entryInfo.Reason))
		}
		printCovering(w, "still", e.CoveredBy)
		for _, entryInfo := range e.Within {
			fmt.Fprintf(w, "  some senders are still matched by %s\n", entryInfo)
		}
		if e.More > 0 {
			fmt.Fprintf(w, "  and by %d more\n", e.More)
		}
	}
	session.PrintOutcome(w, r.DryRun, true, r.Gate)
}
