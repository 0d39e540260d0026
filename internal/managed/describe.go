package managed

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"spamgate/blocklist/listfile"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/text"
)

// maxEdits is how many changed entries of one command have records of their own.
const maxEdits = 1000

// describe sets the records of a change from what differs; nil: that is too much.
func (e *edit) describe(changed *texts) error {
	r := e.record
	if changed == nil {
		if r.What == "" {
			r.What = "replaced the content"
		}
		return nil
	}
	entries, err := Compare(changed.before, changed.after, e.list.Options)
	if err != nil {
		return err
	}
	what := r.What
	if len(entries) > maxEdits {
		e.kept = new(keptEdits)
	}
	for _, c := range entries {
		edit := listedit.Edit{Before: c.Before, After: c.After}
		if e.kept == nil {
			edit.Words = c.String()
		}
		if _, err := e.changeOrKeep(c.Entry, edit); err != nil {
			return err
		}
	}
	switch n := len(entries); {
	case n > maxEdits && what == "":
		r.What = "changed " + text.Count(n, "entry", "entries")
	case n > maxEdits:
	case n == 0 && what == "":
		r.What = "edited, with the same entries"
	case n > 0 && what != "":
		r.Edits = append([]listedit.Edit{{Words: what}}, r.Edits...)
	}
	return nil
}

// EntryChange is an entry whose lines are others in a new text.
type EntryChange struct {
	Entry         listfile.Entry // as the new text has it, or else the old one
	Before, After []string       // its lines
}

// String says what becomes of the entry.
func (c EntryChange) String() string {
	switch {
	case c.After == nil:
		return Removed + " " + listfiles.Written(c.Entry)
	case c.Before == nil:
		return listfiles.Described(listedit.Added, c.Entry)
	}
	return listfiles.Described(listedit.Updated, c.Entry)
}

// Compare returns the entries whose lines differ in two texts of a list: those of the new text in its
// order, and then those that it lacks.
func Compare(before, after []byte, o listfile.Options) ([]EntryChange, error) {
	was, gone, err := linesByEntry(before, o)
	if err != nil {
		return nil, err
	}
	current, order, err := linesByEntry(after, o)
	if err != nil {
		return nil, err
	}
	gone = slices.DeleteFunc(gone, func(name string) bool { return current[name].After != nil })
	slices.Sort(gone)
	var changes []EntryChange
	for _, name := range append(order, gone...) {
		c := current[name]
		if c.After == nil {
			c.Entry = was[name].Entry
		}
		if c.Before = was[name].After; !slices.Equal(c.Before, c.After) {
			changes = append(changes, c)
		}
	}
	return changes, nil
}

// linesByEntry returns each entry of a text with its lines, as After, and the names of the entries in
// their order.
func linesByEntry(content []byte, o listfile.Options) (entries map[string]EntryChange, order []string, err error) {
	o.Format, o.Now = listfile.Plain, 1
	lines := strings.Split(strings.TrimPrefix(string(content), "\ufeff"), "\n")
	entries = map[string]EntryChange{}
	for e, err := range listfile.NewReader(bytes.NewReader(content), o).All() {
		if err != nil {
			return nil, nil, fmt.Errorf("the new content: %w", err)
		}
		name := strings.Clone(listfiles.Written(e))
		entryChange, ok := entries[name]
		if !ok {
			entryChange.Entry = e
			order = append(order, name)
		}
		entryChange.After = append(entryChange.After, strings.TrimSuffix(lines[e.Line-1], "\r"))
		entries[name] = entryChange
	}
	return entries, order, nil
}
