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
	was, _, err := linesByEntry(changed.before, e.list.Options)
	if err != nil {
		return err
	}
	now, order, err := linesByEntry(changed.after, e.list.Options)
	if err != nil {
		return err
	}
	var gone []string
	for name := range was {
		if now[name] == nil {
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	names := slices.DeleteFunc(append(order, gone...), func(name string) bool { return slices.Equal(was[name].texts(), now[name].texts()) })
	what := r.What
	if len(names) > maxEdits {
		e.kept = new(keptEdits)
	}
	for _, name := range names {
		if err := e.compare(name, was[name].texts(), now[name].texts()); err != nil {
			return err
		}
	}
	switch n := len(names); {
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

// compare adds the change of an entry, whose lines have changed.
func (e *edit) compare(name string, was, now []string) error {
	line, what := "", listedit.Added
	switch {
	case now == nil:
		line, what = was[0], Removed
	case was != nil:
		line, what = now[0], listedit.Updated
	default:
		line = now[0]
	}
	x, ok := listfile.ParseLine(line, e.list.Options)
	switch {
	case !ok:
		return fmt.Errorf("the line %q cannot be read alone", line)
	case what == Removed:
		what += " " + name
	case e.kept == nil:
		what = listfiles.Described(what, x)
	}
	_, err := e.changeOrKeep(x, listedit.Edit{Before: was, After: now, Words: what})
	return err
}

// entryLines are the lines of one entry.
type entryLines struct{ lines []string }

// texts returns the lines; nil without the entry.
func (e *entryLines) texts() []string {
	if e == nil {
		return nil
	}
	return e.lines
}

// linesByEntry returns the lines of each entry in a text, and the entries in their order.
func linesByEntry(content []byte, o listfile.Options) (entries map[string]*entryLines, order []string, err error) {
	o.Format, o.Now = listfile.Plain, 1
	lines := strings.Split(strings.TrimPrefix(string(content), "\ufeff"), "\n")
	entries = map[string]*entryLines{}
	for e, err := range listfile.NewReader(bytes.NewReader(content), o).All() {
		if err != nil {
			return nil, nil, fmt.Errorf("the new content: %w", err)
		}
		name := strings.Clone(listfiles.Written(e))
		one := entries[name]
		if one == nil {
			one = &entryLines{}
			entries[name] = one
			order = append(order, name)
		}
		one.lines = append(one.lines, strings.TrimSuffix(lines[e.Line-1], "\r"))
	}
	return entries, order, nil
}
