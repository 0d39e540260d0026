package look

import (
	"fmt"
	"io"
	"strings"

	"spamgate/blocklist"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/config"
	"spamgate/internal/listfiles"
	"spamgate/internal/setup"
	"spamgate/internal/term"
)

// exportSource is what export writes: an index, in the order of the list's lines.
type exportSource struct {
	listfiles.InOrder
	list  config.List
	stats blocklist.ListStats // of what the gate has read
}

// openServed reads a list as the gate does: with the same code, and from the version that
// serves if the files on disk are held. It is not sorted.
func openServed(s *session.Session, l config.List) (*exportSource, error) {
	set, stats, err := s.Read(l)
	if s.Err() != nil {
		return nil, s.Err()
	}
	if err != nil {
		return nil, setup.ExplainMissing(s.Config, err)
	}
	e := &exportSource{list: l, stats: stats[0]}
	index, key, files, ok := set.Index(l.Name)
	if !ok {
		return nil, fmt.Errorf("list %s has no version that could be written: %w", l.Name, e.stats.Err)
	}
	e.List, e.Index, e.Key, e.Files = l.Name, index, key, files
	if e.stats.LastGood {
		fmt.Fprintf(term.Escape(s.Stderr), "spamgate: list %s: the version that serves is written, since what is on disk does not: %v\n", l.Name, e.stats.Err)
	}
	return e, nil
}

// sayLeftOut reports what the gate leaves out.
func (e *exportSource) sayLeftOut(w io.Writer) {
	for _, p := range e.stats.Problems {
		if p.Protected || p.Disallowed {
			fmt.Fprintln(term.Escape(w), session.NewProblemAt(p.File, p.Problem))
		}
	}
	if counts := session.Also(e.stats.Protected, "protected", "protected") +
		session.Also(e.stats.Disallowed, "<> or name@ from a URL", "<> or name@ from a URL") +
		session.Also(e.stats.Expired, "expired", "expired") +
		session.Also(e.stats.Invalid, "invalid", "invalid"); counts != "" {
		fmt.Fprintf(w, "list %s: not written, as the gate leaves it out: %s;\nspamgate lists lint --list %s shows more\n",
			e.list.Name, strings.TrimPrefix(counts, ", "), term.ShellWord(e.list.Name))
	}
}
