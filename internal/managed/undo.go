package managed

import (
	"context"
	"fmt"
	"io"
	"slices"

	"spamgate/blocklist/listfile"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
)

// Change returns the change of an entry, or all that a command changed, by its ID.
func (e *Editor) Change(ctx context.Context, id string) (Change, error) {
	c, err := e.find(ctx, id)
	if err != nil {
		return Change{}, err
	}
	return c.Change, nil
}

// Undo makes the lines of an entry those that they were before a change. If they are no longer
// as the change has left them, the error is ErrConflict. The ID of a command undoes what it did to
// all entries, but for those that were changed since, or that the list would not take now.
func (e *Editor) Undo(ctx context.Context, by By, id string, o Options) (Result, error) {
	c, err := e.undoable(ctx, id)
	if err != nil {
		return Result{}, err
	}
	l, err := e.list(c.List)
	if err != nil {
		return Result{}, err
	}
	edit := e.edit(by, l, "undo", o)
	var r restoration
	result, err := edit.do(ctx, func(old io.ReadSeeker, w io.Writer) error {
		if c, err = e.undoable(ctx, id); err != nil { // meanwhile somebody else may have undone it
			return err
		}
		r = restoration{edit: edit, command: c}
		return r.write(old, w)
	})
	if err == nil {
		result.Entries = r.outcomes
		if c.whole {
			result.Undone, result.Stay = r.undone, r.stay
		}
	}
	return result, err
}

// undoable returns a change that is not undone yet.
func (e *Editor) undoable(ctx context.Context, id string) (*command, error) {
	c, err := e.find(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case c.Undone != nil && c.Undone.ID == "":
		return nil, fmt.Errorf("change %s: %w: it was not made", id, ErrNoChange)
	case c.Undone != nil:
		return nil, fmt.Errorf("change %s: %w, by %s", id, ErrUndone, c.Undone.By)
	}
	return c, nil
}

// restoration is one Undo.
type restoration struct {
	*edit
	command *command
	guarded listfiles.Protection
	splice  listedit.Splice

	outcomes     []Outcome
	undone, stay int
}

// write copies a list with the lines of entries as they were before.
func (r *restoration) write(old io.ReadSeeker, w io.Writer) error {
	r.splice = listedit.Splice{Replace: map[int]string{}, Remove: map[int]bool{}, Empty: listedit.NoEntries}
	r.guarded = listfiles.NewProtection(r.config())
	r.record.Edits, r.kept = nil, nil
	if c := r.command; c.kept() || len(c.records) > maxEdits {
		r.kept = &keptEdits{undoes: c.ID}
	}
	if err := r.command.each(r.Editor, func(edits []listedit.Edit) error { return r.restore(old, edits) }); err != nil {
		return err
	}
	if r.undone == 0 {
		return fmt.Errorf("change %s: %w: no entry is as it left it, such as %s: %s", r.command.ID, ErrConflict, r.outcomes[0].Entry, r.outcomes[0].Why)
	}
	r.describe()
	if _, err := old.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := r.splice.Copy(w, old)
	return err
}

// restore notes for some entries which lines are as before.
func (r *restoration) restore(old io.ReadSeeker, edits []listedit.Edit) error {
	entries, invalid := r.parse(edits)
	wanted := slices.Clone(entries)
	exceptions := make([]int, len(edits)) // places in wanted of what would cancel an entry
	for i, x := range entries {
		if len(edits[i].Before) > 0 && !x.Exception {
			x.Exception = true
			exceptions[i] = len(wanted)
			wanted = append(wanted, x)
		}
	}
	lines, err := listedit.Lines(old, r.list.Options, wanted)
	if err != nil {
		return err
	}
	for i, edit := range edits {
		err := invalid[i]
		if err == nil {
			err = r.check(entries[i], edit, lines[i], exceptions[i] > 0 && len(lines[exceptions[i]]) > 0)
		}
		if err != nil && !r.command.whole {
			return err
		}
		if err != nil {
			r.stays(edit, err)
			continue
		}
		putBack(&r.splice, lines[i], edit.Before)
		if err := r.restored(entries[i], edit); err != nil {
			return err
		}
	}
	return nil
}

// parse parses the entries of changes. Each that the list does not take now has an error.
func (r *restoration) parse(edits []listedit.Edit) ([]listfile.Entry, []error) {
	entries, invalid := make([]listfile.Entry, len(edits)), make([]error, len(edits))
	for i, edit := range edits {
		var err error
		name := Name{Entry: edit.Entry, For: edit.For}
		if _, entries[i], err = name.parse(r.list); err != nil {
			invalid[i] = fmt.Errorf("change %s: %w: list %s has other settings now: %w", r.command.ID, ErrConflict, r.list.Name, err)
		}
	}
	return entries, invalid
}

// check returns why an entry cannot be made what it was before.
func (r *restoration) check(x listfile.Entry, edit listedit.Edit, lines []listedit.Line, cancelled bool) error {
	for _, line := range edit.Before {
		e, ok := listfile.ParseLine(line, r.list.Options)
		if !ok {
			return fmt.Errorf("%w: list %s no longer takes the line %q", ErrConflict, r.list.Name, line)
		}
		if err := r.guarded.Check(r.list, e); err != nil {
			return fmt.Errorf("%w: %w", ErrProtected, err)
		}
	}
	texts := make([]string, len(lines))
	for i, line := range lines {
		texts[i] = line.Text
	}
	switch {
	case !slices.Equal(texts, edit.After):
		return fmt.Errorf("%w: its lines of %s are %q, and were %q", ErrConflict, listfiles.Written(x), texts, edit.After)
	case cancelled:
		return fmt.Errorf("%s: %w (%w)", listfiles.Written(x), ErrCancelled, ErrConflict)
	}
	return nil
}

// putBack puts lines in the place of those that an entry has now.
func putBack(splice *listedit.Splice, lines []listedit.Line, before []string) {
	for i, line := range lines {
		if i == 0 && len(before) > 0 {
			splice.Replace[line.Number], before = before[0], before[1:]
		} else {
			splice.Remove[line.Number] = true
		}
	}
	splice.Append = append(splice.Append, before...)
}

// restored notes an entry that is as before.
func (r *restoration) restored(x listfile.Entry, edit listedit.Edit) error {
	what := edit.Words
	if what == "" {
		what = listfiles.Written(x)
	}
	change, err := r.changeOrKeep(x, listedit.Edit{Before: edit.After, After: edit.Before, Words: "undone: " + what, Undoes: edit.ID})
	if err != nil {
		return err
	}
	if r.undone++; r.undone <= maxEdits {
		r.outcomes = append(r.outcomes, Outcome{EntryInfo: r.info(x), What: Undid, Now: edit.Before, Change: change})
	}
	return nil
}

// stays notes an entry that stays as it is.
func (r *restoration) stays(edit listedit.Edit, why error) {
	if r.stay++; r.stay <= maxEdits {
		info := listfiles.EntryInfo{List: r.list.Name, File: r.list.Copy, Entry: edit.Entry, For: edit.For}
		r.outcomes = append(r.outcomes, Outcome{EntryInfo: info, What: Stays, Why: why.Error()})
	}
}

// describe sets what the audit log says of the undo of a command.
func (r *restoration) describe() {
	if !r.command.whole {
		return
	}
	slices.SortStableFunc(r.outcomes, func(a, b Outcome) int { // what stays first
		switch {
		case a.What == b.What:
			return 0
		case a.What == Stays:
			return -1
		}
		return 1
	})
	r.record.What = "undone: " + r.command.What
	if r.kept == nil {
		r.record.Edits = slices.Insert(r.record.Edits, 0, listedit.Edit{Words: r.record.What, Undoes: r.command.ID})
	}
}
