package lists

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

// checkedText is the text of a list, with what is wrong in it or likely to be.
type checkedText struct {
	entries  int
	problems []problemAt
}

// checkText checks the text of a list. An error means that it is no list.
func checkText(path string, content []byte, l *listfiles.List, guarded listfiles.Protection) (*checkedText, error) {
	c := &checkedText{}
	o := l.Options
	o.Format = listfile.Plain
	note := func(p problemAt) {
		p.File = path
		c.problems = append(c.problems, p)
	}
	entries := listfile.NewReader(bytes.NewReader(content), o)
	entries.Problem = func(p listfile.Problem) { note(newProblemAt(path, p)) }
	for e, err := range entries.All() {
		if err != nil {
			return nil, err
		}
		c.entries++
		if why := guarded.LeftOut(l, e); why.Omitted() {
			note(warning(e, why.What(), why.Hint()))
		} else if domain, ok := coversTenants(e); ok && !e.Exception {
			note(warning(e, "its customers have names below it", "list theirs, or write @"+domain+" for that name alone"))
		}
	}
	if name := entries.Result().Packed; name != "" {
		return nil, fmt.Errorf("it is packed with %s now", name)
	}
	return c, nil
}

// newFaults returns what is wrong in a text, or likely to be, and was not before. ShrinkPercent
// is the largest part of its entries that the list may lose without a warning.
func (c *checkedText) newFaults(before *checkedText, shrinkPercent int64) (faults []string) {
	known := map[string]bool{}
	same := func(p problemAt) string { return p.Text + "\x00" + p.What }
	for _, p := range before.problems {
		known[same(p)] = true
	}
	for _, p := range c.problems {
		if !known[same(p)] {
			faults = append(faults, p.String())
		}
	}
	switch lost := before.entries - c.entries; {
	case before.entries > 0 && c.entries == 0:
		faults = append(faults, "warning: no entry is left; before: "+text.Count(before.entries, "entry", "entries"))
	case before.entries >= fewEntries && int64(lost)*100 > shrinkPercent*int64(before.entries):
		faults = append(faults, fmt.Sprintf("warning: %s of %s entries are gone", text.Number(lost), text.Number(before.entries)))
	}
	return faults
}

// fewEntries is the length below which a list may lose a large part without a warning.
const fewEntries = 10

// editedEntries describes the entries that an edit adds, updates and removes, as the audit
// log does. It parses the lines between the first and the last change.
func editedEntries(before, after []byte, o listfile.Options) ([]string, error) {
	before, after = differing(before, after)
	was, _, err := entriesByName(before, o)
	if err != nil {
		return nil, err
	}
	now, order, err := entriesByName(after, o)
	if err != nil {
		return nil, err
	}
	words := []string{}
	for _, name := range order {
		old, ok := was[name]
		switch e := now[name]; {
		case !ok:
			words = append(words, listfiles.Described(listedit.Added, e))
		case old.Reason != e.Reason || old.Note != e.Note || old.Until != e.Until:
			words = append(words, listfiles.Described(listedit.Updated, e))
		}
	}
	var removed []string
	for name := range was {
		if _, ok := now[name]; !ok {
			removed = append(removed, "removed "+name)
		}
	}
	slices.Sort(removed)
	return append(words, removed...), nil
}

// entriesByName returns the first entry of each name in a text, and the names in their order.
func entriesByName(content []byte, o listfile.Options) (entries map[string]listfile.Entry, order []string, err error) {
	o.Format, o.Now = listfile.Plain, 1
	entries = map[string]listfile.Entry{}
	for e, err := range listfile.NewReader(bytes.NewReader(content), o).All() {
		if err != nil {
			return nil, nil, err
		}
		name := strings.Clone(listfiles.Written(e))
		if _, ok := entries[name]; !ok {
			entries[name] = e
			order = append(order, name)
		}
	}
	return entries, order, nil
}

// differing returns two texts without the lines that they begin with and end with alike.
func differing(a, b []byte) (_, _ []byte) {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	n = bytes.LastIndexByte(a[:n], '\n') + 1
	a, b = a[n:], b[n:]
	n = 0
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	if n == len(a) && n == len(b) {
		return nil, nil
	}
	// The common end begins inside a line, unless a line end precedes it in both.
	end := a[len(a)-n:]
	if whole := bytes.IndexByte(end, '\n') + 1; whole > 0 {
		end = end[whole:]
	} else {
		end = nil
	}
	return a[:len(a)-len(end)], b[:len(b)-len(end)]
}
