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
	what := r.What
	for _, name := range append(order, gone...) {
		e.compare(name, was[name], now[name])
	}
	switch n := len(r.Edits); {
	case n > maxEdits:
		e.many = true
		if what == "" {
			r.What = "changed " + text.Count(n, "entry", "entries")
		}
	case n == 0 && what == "":
		r.What = "edited, with the same entries"
	case n > 0 && what != "":
		r.Edits = append([]listedit.Edit{{Words: what}}, r.Edits...)
	}
	return nil
}

// compare adds the change of an entry to the record, if its lines have changed.
func (e *edit) compare(name string, was, now *entryLines) {
	switch {
	case now == nil:
		e.change(was.entry, Removed+" "+name, was.lines, nil)
	case was == nil:
		e.change(now.entry, listfiles.Described(listedit.Added, now.entry), nil, now.lines)
	case !slices.Equal(was.lines, now.lines):
		e.change(now.entry, listfiles.Described(listedit.Updated, now.entry), was.lines, now.lines)
	}
}

// entryLines are the lines of one entry.
type entryLines struct {
	entry listfile.Entry // of the first line
	lines []string
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
			one = &entryLines{entry: e}
			entries[name] = one
			order = append(order, name)
		}
		one.lines = append(one.lines, strings.TrimSuffix(lines[e.Line-1], "\r"))
	}
	return entries, order, nil
}
