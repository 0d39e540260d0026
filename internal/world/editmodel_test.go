package world

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/managed"
)

// entries is a list: the reasons by the entries.
type entries map[string]string

// A managedModel is what is known of a managed list.
type managedModel struct {
	name    string
	path    string
	current entries   // what the file has
	may     []entries // what a crash may leave of it
	live    bool      // the gate has made what the file has live
}

// A changeModel is an edit that was acknowledged, or a part of it that one entry is.
type changeModel struct {
	id, command   string
	list          *managedModel
	entry         string
	before, after string // reasons; "" without the entry
	undone        bool
	perhaps       bool // an undo of it was not acknowledged
}

// read reads what the file of a list has.
func (l *managedModel) read() (entries, error) {
	text, err := os.ReadFile(l.path)
	if err != nil {
		return nil, err
	}
	return l.parse(text)
}

// parse parses what the file of a list has.
func (l *managedModel) parse(text []byte) (entries, error) {
	if len(text) > 0 && text[len(text)-1] != '\n' {
		return nil, fmt.Errorf("list %s does not end in a line end: %q", l.name, text)
	}
	has := entries{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		entry, reason, ok := strings.Cut(line, "#")
		entry, reason = strings.TrimSpace(entry), strings.TrimSpace(reason)
		if _, twice := has[entry]; !ok || twice {
			return nil, fmt.Errorf("list %s has the line %q: %q", l.name, line, text)
		}
		has[entry] = reason
	}
	return has, nil
}

// edited compares what a list has after an edit that would make it after. Without an
// acknowledgement it has that, or what it had.
func (l *managedModel) edited(after entries, acknowledged bool) error {
	has, err := l.read()
	if err != nil {
		return err
	}
	before := l.current
	switch {
	case acknowledged && !maps.Equal(has, after):
		return fmt.Errorf("list %s has %v, and the edit that was acknowledged makes it %v", l.name, has, after)
	case !maps.Equal(has, after) && !maps.Equal(has, before):
		return fmt.Errorf("list %s has %v, after an edit of %v that was to make it %v", l.name, has, before, after)
	}
	l.current = has
	if !maps.Equal(has, before) {
		l.live = false
	}
	if l.may = append(l.may, has); acknowledged {
		l.may = []entries{has}
	}
	return nil
}

// restarted compares what a crash has left.
func (l *managedModel) restarted() error {
	has, err := l.read()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(l.may, func(e entries) bool { return maps.Equal(e, has) }) {
		return fmt.Errorf("list %s has %v after a crash, and may have %v", l.name, has, l.may)
	}
	l.current, l.may, l.live = has, []entries{has}, false
	return nil
}

// log compares the audit log with the edits that were acknowledged, and with what the lists have:
// nothing is in a list that no record put there.
func (s *editWorld) log() error {
	page, err := s.command.Changes(s.ctx, managed.ChangesQuery{Limit: 1 << 20})
	if err != nil || page.Incomplete {
		return fmt.Errorf("the audit log (incomplete: %t): %w", page.Incomplete, err)
	}
	for _, l := range s.lists {
		for entry, reason := range l.current {
			if !slices.ContainsFunc(page.Changes, func(r managed.Change) bool {
				return r.List == l.name && r.Entry == entry && reasonOf(r.After) == reason
			}) {
				return fmt.Errorf("list %s has %s, reason %s, and the audit log does not say how that came", l.name, entry, reason)
			}
		}
	}
	for _, c := range s.changes {
		var found []managed.Change
		for _, r := range page.Changes {
			if r.ID == c.id {
				found = append(found, r)
			}
		}
		if len(found) != 1 {
			return fmt.Errorf("the audit log has %d records of a change of %s in list %s that was acknowledged", len(found), c.entry, c.list.name)
		}
		r := found[0]
		undone := r.Undone != nil
		if r.List != c.list.name || r.Entry != c.entry || undone != c.undone && !c.perhaps ||
			reasonOf(r.Before) != c.before || reasonOf(r.After) != c.after {
			return fmt.Errorf("the audit log has of %s in list %s, from %q to %q, undone %t: %+v", c.entry, c.list.name, c.before, c.after, c.undone, r)
		}
	}
	return nil
}

// reasonOf returns the reason of an entry's line; "" without a line.
func reasonOf(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	_, reason, _ := strings.Cut(lines[0], "#")
	return strings.TrimSpace(reason)
}

// serves compares what the gate serves with the lists that are live.
func (s *editWorld) serves() error {
	all := true
	listed := map[string]bool{}
	for _, l := range s.lists {
		all = all && l.live
		for e := range l.current {
			listed[e] = true
		}
	}
	if !all {
		return nil // another list may match
	}
	for n := range 6 {
		name := entryName(n)
		v, err := s.store.Set().Lookup(verdict.Envelope, must(sender.Parse("u@"+name)))
		if err != nil {
			return err
		}
		if is := v.Action == verdict.Reject; is != listed[name] {
			return fmt.Errorf("%s is live: %t, and the lists have it: %t", name, is, listed[name])
		}
	}
	return nil
}

func entryName(n int) string { return fmt.Sprintf("e%d.example", n) }

// leftovers returns an error if there are temporary files that the next edit did not remove.
func (s *editWorld) leftovers() error {
	for _, path := range files(filepath.Join(s.disk.root, managed.Dir)) {
		if strings.HasSuffix(path, ".spamgate-new") {
			return errors.New("a replacement is left in managed/")
		}
	}
	return s.disk.unseen()
}
