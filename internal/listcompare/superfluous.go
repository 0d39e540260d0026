package listcompare

import (
	"slices"
	"sync"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/config"
	"spamgate/internal/listfiles"
)

// Superfluous finds entries of lists without which every sender's address is decided as before:
// with the same action, at each stage, listener and door, now and whenever entries expire.
// Another entry then gives the reason.
//
// Removals count at once, so that of two entries that cover each other one stays.
type Superfluous struct {
	lists   []*superfluousList
	key     *segment.Key
	fetched bool

	asked  [][]string // the names of the lists of each listener, door and recipient policy; empty: all
	hashed [][]string // those of the DNS servers with a hashed zone
}

// superfluousList is one list as it is without the removed entries.
type superfluousList struct {
	*listfiles.List
	segment *segment.Segment
	removed map[string]Cover // by their keys

	mu         sync.Mutex
	exceptions bool
	excepted   map[string]bool // keys of exceptions, and of what covers them
	defers     bool            // some entries ask for defer, whatever the list's action
}

// Cover is the entry because of which another is superfluous.
type Cover struct {
	List *listfiles.List
	Key  string
}

// NewSuperfluous begins a search among lists with a configuration. Fetched lets entries of lists
// from a URL make others superfluous, although the next update may remove them.
func NewSuperfluous(c *config.Config, key *segment.Key, fetched bool) *Superfluous {
	s := &Superfluous{key: key, fetched: fetched}
	for _, l := range c.Listeners {
		s.asked = append(s.asked, l.Lists)
	}
	for _, d := range c.Doors {
		s.asked = append(s.asked, d.Lists)
		if d.HashedZone != "" {
			s.hashed = append(s.hashed, d.Lists)
		}
	}
	for _, p := range c.RecipientPolicies {
		s.asked = append(s.asked, p.Lists)
	}
	return s
}

// hashes reports whether a hashed zone has an entry of a list. It finds the entry by the hash
// of its address alone: no other entry takes its place there.
func (s *Superfluous) hashes(l *superfluousList, e listfile.Entry) bool {
	return l.Type == "block" && e.Kind == sender.KindAddress && slices.ContainsFunc(s.hashed, func(lists []string) bool {
		return len(lists) == 0 || slices.Contains(lists, l.Name)
	})
}

// Add reads the next list, and returns its segment. It leaves out the entries for which leave
// reports true.
func (s *Superfluous) Add(scan *listfiles.Scan, l *listfiles.List, leave func(listfile.Entry) bool) (*segment.Segment, error) {
	covered := &superfluousList{List: l, removed: map[string]Cover{}, excepted: map[string]bool{}}
	var err error
	covered.segment, err = listfiles.Segment(scan, l, s.key, func(e listfile.Entry) bool {
		if leave(e) {
			return true
		}
		covered.note(e)
		return false
	})
	s.lists = append(s.lists, covered)
	return covered.segment, err
}

// note notes what is special about an entry. Several goroutines call it.
func (l *superfluousList) note(e listfile.Entry) {
	if !e.Exception && !e.Defer {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.defers = l.defers || e.Defer
	if e.Exception {
		l.exceptions = true
		l.excepted[e.Key] = true
		for _, key := range listfile.Covering(e.Key, e.Kind) {
			l.excepted[key] = true
		}
	}
}

// find returns what a list has under a key.
func (s *Superfluous) find(l *superfluousList, key string) (r segment.Record, ok bool, err error) {
	if _, removed := l.removed[key]; removed {
		return r, false, nil
	}
	return l.segment.Lookup(s.key.Hash([]byte(key)), []byte(key))
}

// Remove returns what covers an entry of the n-th list, in the list's file with that number, if
// it is superfluous. It counts as removed then.
func (s *Superfluous) Remove(n, file int, e listfile.Entry) (by Cover, ok bool, err error) {
	own := s.lists[n]
	if e.Exception {
		return by, false, nil
	}
	r, ok, err := own.segment.Lookup(s.key.Hash([]byte(e.Key)), []byte(e.Key))
	if err != nil || !ok || r.Exception {
		return by, false, err
	}
	if r.File != file || r.Line != e.Line {
		return Cover{own.List, e.Key}, true, nil // the line has no effect; without the other the same covers it
	}
	chain := listfile.Covering(e.Key, e.Kind)
	for i, l := range append([]*superfluousList{own}, s.lists...) {
		if i > 0 && !s.replaces(l, own, e) {
			continue
		}
		pos, key, err := s.cover(l, own, e, chain)
		if err != nil {
			return by, false, err
		}
		if key == "" || key != e.Key && s.hashes(own, e) {
			continue
		}
		opposed, err := s.opposed(l, own, e, chain, pos)
		if err != nil {
			return by, false, err
		}
		if !opposed {
			by = Cover{l.List, key}
			own.removed[e.Key] = by
			return by, true, nil
		}
	}
	return by, false, nil
}

// Stays returns the entry that takes the place of a cover at the end, when the cover may have
// been removed itself.
func (s *Superfluous) Stays(c Cover) Cover {
	for {
		i := slices.IndexFunc(s.lists, func(l *superfluousList) bool { return l.List == c.List })
		next, removed := s.lists[i].removed[c.Key]
		if !removed {
			return c
		}
		c = next
	}
}

// cover returns the entry of a list that takes the place of an entry, and how many of the chain's
// keys come before and with it; "" if there is none.
func (s *Superfluous) cover(l, own *superfluousList, e listfile.Entry, chain []string) (pos int, key string, err error) {
	if l != own {
		chain = append([]string{e.Key}, chain...)
	}
	for i, key := range chain {
		if listfile.KindOf(key) == sender.KindLocal && e.Kind != sender.KindLocal {
			break // between the two, entries of other local parts may count
		}
		r, ok, err := s.find(l, key)
		if err != nil {
			return 0, "", err
		}
		if !ok {
			continue
		}
		if r.Exception || r.Defer && !e.Defer {
			break
		}
		if r.Until != 0 && (e.Until == 0 || r.Until < e.Until) {
			continue // it ends before the entry does
		}
		if l == own {
			i++
		}
		return i, key, nil
	}
	return 0, "", nil
}

// replaces reports whether the matches of list l take the place of those that an entry of list
// own has, if they are for the same senders.
func (s *Superfluous) replaces(l, own *superfluousList, e listfile.Entry) bool {
	switch {
	case l == own, l.PerRecipient, l.URL != "" && !s.fetched, !Covers(l.List.List, own.List.List):
		return false
	case l.defers, l.excepted[e.Key], l.exceptions && e.Kind == sender.KindLocal:
		return false // some of the senders have another match there, or none
	}
	for _, stage := range own.Stage {
		// A tag names its list, and the log of a list that monitors is its purpose.
		if action := actionAt(own.List.List, stage); own.Type == "block" && (action == verdict.Tag || action == verdict.Monitor) {
			return false
		}
	}
	return !slices.ContainsFunc(s.asked, func(lists []string) bool {
		return len(lists) > 0 && slices.Contains(lists, own.Name) && !slices.Contains(lists, l.Name)
	})
}

// opposed reports whether an entry of the opposite type decides otherwise if a less specific
// entry takes the place of e: an allow entry that shields from that, but not from e; or a block
// entry from which e shields, but that does not. The keys in question are the first ones of the
// chain.
func (s *Superfluous) opposed(l, own *superfluousList, e listfile.Entry, chain []string, pos int) (bool, error) {
	between := chain[:pos]
	if own.Type == "allow" {
		if l.Override || pos == 0 {
			return false, nil
		}
		between = append([]string{e.Key}, chain[:pos-1]...)
	}
	for _, other := range s.lists {
		if other.Type == own.Type {
			continue
		}
		if other.PerRecipient && len(between) > 0 {
			return true, nil // what it has for each recipient is not known here
		}
		for _, key := range between {
			// When an exception ends, a plain entry beside it counts.
			if r, ok, err := s.find(other, key); err != nil || ok && (!r.Exception || r.Until != 0) {
				return true, err
			}
		}
	}
	return false, nil
}
