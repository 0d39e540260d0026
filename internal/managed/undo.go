package managed

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"spamgate/blocklist/listfile"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
)

// Change returns the change with an ID.
func (e *Editor) Change(ctx context.Context, id string) (Change, error) {
	if !isID(id) {
		return Change{}, fmt.Errorf("change %q: %w", id, ErrNoChange)
	}
	var found *Change
	undone := map[string]*Undone{}
	_, err := e.log().Newest(ctx, listedit.Search{
		Line: func(line []byte) bool {
			return bytes.Contains(line, []byte(id)) || bytes.Contains(line, []byte(`"command":"`+listedit.Failed+`"`))
		},
		Found: func(r listedit.Record) bool {
			note(undone, &r)
			if r.ID == id {
				found = newChange(r, undone)
			}
			return found == nil
		},
	})
	if err == nil && found == nil {
		err = fmt.Errorf("change %s: %w", id, ErrNoChange)
		if c := e.config(); c.Fleet.On() {
			err = fmt.Errorf("%w on this gate: undo works on the gate of the fleet where the change was made", err)
		}
	}
	if err != nil {
		return Change{}, err
	}
	return *found, nil
}

// Undo makes the lines of an entry those that they were before a change. If they are no longer
// as the change has left them, the error is ErrConflict.
func (e *Editor) Undo(ctx context.Context, by By, id string, o Options) (Result, error) {
	change, err := e.undoable(ctx, id)
	if err != nil {
		return Result{}, err
	}
	l, err := e.list(change.List)
	if err != nil {
		return Result{}, err
	}
	x, err := change.entry(l)
	if err == nil {
		err = e.checkRestored(l, change.Before)
	}
	if err != nil {
		return Result{}, err
	}
	edit := e.edit(by, l, "undo", o)
	var outcome Outcome
	result, err := edit.do(ctx, func(old io.ReadSeeker, w io.Writer) error {
		if _, err := e.undoable(ctx, id); err != nil { // meanwhile somebody else may have undone it
			return err
		}
		edit.record.Edits = nil
		outcome = Outcome{EntryInfo: edit.info(x), What: Undid, Now: change.Before}
		outcome.Change = edit.change(x, "undone: "+change.What, change.After, change.Before)
		edit.record.Edits[0].Undoes = id
		return restore(old, w, l.Options, x, change.After, change.Before)
	})
	if err == nil {
		result.Entries = []Outcome{outcome}
	}
	return result, err
}

// undoable returns a change that is not undone yet.
func (e *Editor) undoable(ctx context.Context, id string) (Change, error) {
	change, err := e.Change(ctx, id)
	switch {
	case err != nil:
		return change, err
	case change.Undone != nil && change.Undone.ID == "":
		return change, fmt.Errorf("change %s: %w: it was not made", id, ErrNoChange)
	case change.Undone != nil:
		return change, fmt.Errorf("change %s: %w, by %s", id, ErrUndone, change.Undone.By)
	}
	return change, nil
}

// entry returns the entry of the change.
func (c *Change) entry(l *listfiles.List) (listfile.Entry, error) {
	name := Name{Entry: c.Entry, For: c.For}
	_, x, err := name.parse(l)
	if err != nil {
		err = fmt.Errorf("change %s: %w: list %s has other settings now: %w", c.ID, ErrConflict, l.Name, err)
	}
	return x, err
}

// checkRestored refuses lines that the list would not take now.
func (e *Editor) checkRestored(l *listfiles.List, lines []string) error {
	guarded := listfiles.NewProtection(e.config())
	for _, line := range lines {
		x, ok := listfile.ParseLine(line, l.Options)
		if !ok {
			return fmt.Errorf("%w: list %s no longer takes the line %q", ErrConflict, l.Name, line)
		}
		if err := guarded.Check(l, x); err != nil {
			return fmt.Errorf("%w: %w", ErrProtected, err)
		}
	}
	return nil
}

// restore copies a list in which the lines of an entry are now so, and should be as before.
func restore(old io.ReadSeeker, w io.Writer, o listfile.Options, x listfile.Entry, now, before []string) error {
	lines, err := listedit.Lines(old, o, x)
	if err != nil {
		return err
	}
	texts := make([]string, len(lines))
	for i, line := range lines {
		texts[i] = line.Text
	}
	if !slices.Equal(texts, now) {
		return fmt.Errorf("%w: its lines of %s are %q, and were %q", ErrConflict, listfiles.Written(x), texts, now)
	}
	if len(before) > 0 && !x.Exception {
		opposite := x
		opposite.Exception = true
		if cancelling, err := listedit.Lines(old, o, opposite); err != nil || len(cancelling) > 0 {
			return fmt.Errorf("%s: %w (%w)", listfiles.Written(x), ErrCancelled, ErrConflict)
		}
	}
	splice := listedit.Splice{Replace: map[int]string{}, Remove: map[int]bool{}, Empty: listedit.NoEntries, Append: before}
	for i, line := range lines {
		if i == 0 && len(before) > 0 {
			splice.Replace[line.Number], splice.Append = before[0], before[1:]
		} else {
			splice.Remove[line.Number] = true
		}
	}
	if _, err := old.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = splice.Copy(w, old)
	return err
}
