package edit

import (
	"bytes"
	"fmt"

	"spamgate/blocklist/listfile"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/listfiles"
	"spamgate/internal/managed"
	"spamgate/internal/text"
)

// checkedText is the text of a list, with what is wrong in it or likely to be.
type checkedText struct {
	entries  int
	problems []session.ProblemAt
}

// checkText checks the text of a list. An error means that it is no list.
func checkText(path string, content []byte, l *listfiles.List, guarded listfiles.Protection) (*checkedText, error) {
	c := &checkedText{}
	o := l.Options
	o.Format = listfile.Plain
	note := func(p session.ProblemAt) {
		p.File = path
		c.problems = append(c.problems, p)
	}
	entries := listfile.NewReader(bytes.NewReader(content), o)
	entries.Problem = func(p listfile.Problem) { note(session.NewProblemAt(path, p)) }
	for e, err := range entries.All() {
		if err != nil {
			return nil, err
		}
		c.entries++
		if why := guarded.LeftOut(l, e); why.Omitted() {
			note(session.Warning(e, why.What(), why.Hint()))
		} else if domain, ok := session.CoversTenants(e); ok && !e.Exception {
			note(session.Warning(e, "its customers have names below it", "list theirs, or write @"+domain+" for that name alone"))
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
	same := func(p session.ProblemAt) string { return p.Text + "\x00" + p.What }
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
	changes, err := managed.Compare(before, after, o)
	words := []string{}
	for _, c := range changes {
		words = append(words, c.String())
	}
	return words, err
}

// differing returns two texts without the lines that they begin with and end with alike.
func differing(a, b []byte) (_, _ []byte) {
	for n := 1; n > 0; a, b = a[n:], b[n:] {
		if n = bytes.IndexByte(a, '\n') + 1; !bytes.HasPrefix(b, a[:n]) {
			break
		}
	}
	for len(a) > 0 {
		start := bytes.LastIndexByte(a[:len(a)-1], '\n') + 1
		rest, ok := bytes.CutSuffix(b, a[start:])
		if !ok || len(rest) > 0 && rest[len(rest)-1] != '\n' {
			break
		}
		a, b = a[:start], rest
	}
	return a, b
}
