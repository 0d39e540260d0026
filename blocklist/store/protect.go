package store

import (
	"fmt"
	"slices"
	"strings"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
)

// protectedNames holds the keys that cover a protected name entirely, each with that name. Nil
// protects nothing.
type protectedNames struct {
	covers map[string]string
	names  string // all of them: what tells two apart
}

// coveringKinds are the kinds of key that cover a whole domain.
const coveringKinds = sender.KindSet(1<<sender.KindAtDomain | 1<<sender.KindDomain | 1<<sender.KindSubdomains)

// protect parses the names. They are those of the configuration, some dozens.
func protect(names []string) (*protectedNames, error) {
	if len(names) == 0 {
		return nil, nil
	}
	p := &protectedNames{covers: map[string]string{}}
	names = slices.Sorted(slices.Values(names))
	for _, name := range names {
		a, err := sender.Parse("someone@" + name)
		if err != nil {
			return nil, fmt.Errorf("protected name %q is not a domain: %w", name, err)
		}
		walk := a.Walk(nil)
		walk.Only(coveringKinds)
		for key, ok := walk.Next(); ok; key, ok = walk.Next() {
			if _, known := p.covers[string(key.Text)]; !known {
				p.covers[string(key.Text)] = name
			}
		}
	}
	p.names = strings.Join(names, " ")
	return p, nil
}

// covered returns the protected name that an entry covers; "" if there is none.
func (p *protectedNames) covered(e *listfile.Entry) string {
	if p == nil || e.Exception || !coveringKinds.Has(e.Kind) {
		return ""
	}
	return p.covers[e.Key]
}

// protectedProblem describes an entry that was left out.
func protectedProblem(path string, e *listfile.Entry, name string) blocklist.FileProblem {
	return blocklist.FileProblem{File: path, Protected: true, Problem: listfile.Problem{
		Line: e.Line,
		Text: e.Key,
		What: fmt.Sprintf("it covers all of %s, which is protected", name),
		Hint: `list single addresses there, or set on_protected = "accept" for this list`,
	}}
}
