package blocklist

import "spamgate/blocklist/sender"

// keyRoom is the scratch that a lookup offers for making keys: enough for any
// address of RFC 5321 (64 octets, "@", 255), with a tag for half of that. Longer
// ones work and cost an allocation.
const keyRoom = 384

// Lookup says what the lists think of a sender at one stage. For a sender whom
// no list knows it does not allocate.
func (s *Set) Lookup(stage Stage, a sender.Address) Decision { return s.all.Lookup(stage, a) }

// Lookup is [Set.Lookup] as it would be if the lists that count were the only
// ones. It counts towards the Set's lookups, of which a key that another list
// holds is no false positive.
func (v *View) Lookup(stage Stage, a sender.Address) Decision {
	s := v.set
	s.counters.lookups.Add(1)
	stage &= allStages
	var room [keyRoom]byte
	walk := a.Walk(room[:0])
	walk.Only(v.kinds[stage])
	var f finding
	for !f.complete() {
		key, ok := walk.Next()
		if !ok {
			break
		}
		if !s.filter.MayContain(key.Text) {
			continue
		}
		s.counters.maybes.Add(1)
		if !v.confirmKey(&f, stage, key) {
			s.counters.falsePositives.Add(1)
		}
	}
	if f.lists == nil {
		return Decision{}
	}
	return s.decide(&f)
}

// finding is what one lookup has found so far.
type finding struct {
	lists []found // by list; nil before the first
	open  int     // lists that may yet find something
}

// found is a list's most specific entry for the sender.
type found struct {
	settled   bool // less specific keys no longer matter
	exception bool // the entry is an exception: the list has no match
	match     Match
}

func (f *finding) complete() bool { return f.lists != nil && f.open == 0 }

// settle notes what a list that counts has found.
func (f *finding) settle(v *View, stage Stage, list int, what found) {
	if f.lists == nil {
		f.lists = make([]found, len(v.set.lists))
		for i := range f.lists {
			if v.counts(i, stage) {
				f.open++
			}
		}
	}
	if f.lists[list].settled {
		return
	}
	what.settled = true
	f.lists[list] = what
	f.open--
}

// confirmKey asks every list for a key that the filter may contain, and reports
// whether any holds it. Lists that no longer matter, or do not count, are asked
// too: what they hold is no false positive.
//
// Keys come most specific first. So the first that a list holds is its match, or
// an exception that cancels whatever would follow.
func (v *View) confirmKey(f *finding, stage Stage, key sender.Key) bool {
	s := v.set
	if !s.confirm { // with one list, and that counts: else no key is asked for
		l := &s.lists[0]
		f.settle(v, stage, 0, found{match: Match{
			List: l.Name, Entry: string(key.Text), Rank: key.Rank,
			Action: l.action(stage), PublicReason: l.PublicReason,
		}})
		return true
	}
	confirmed := false
	hash := hashOf(key.Text)
	for i := range s.lists {
		l := &s.lists[i]
		e := l.version.index.lookup(hash, key.Text)
		if e == nil {
			continue
		}
		confirmed = true
		switch {
		case !v.counts(i, stage):
		case e.exception():
			f.settle(v, stage, i, found{exception: true})
		default:
			f.settle(v, stage, i, found{match: l.match(e, stage, key.Rank)})
		}
	}
	return confirmed
}

// match describes an entry of the list.
func (l *setList) match(e *entry, stage Stage, rank int32) Match {
	x := l.version.index
	return Match{
		List:         l.Name,
		File:         l.version.files[e.file].Path,
		Line:         int(e.line),
		Entry:        string(x.key(e)),
		Reason:       x.reason(e),
		Note:         x.note(e),
		PublicReason: l.PublicReason,
		Allow:        l.Type == Allow,
		Action:       l.action(stage),
		Rank:         rank,
	}
}

// decide weighs what the lists have found.
func (s *Set) decide(f *finding) Decision {
	var matches []Match
	override := -1
	for i := range f.lists {
		if f.lists[i].match.IsZero() {
			continue
		}
		if s.lists[i].Override && override < 0 {
			override = len(matches)
		}
		matches = append(matches, f.lists[i].match)
	}
	if matches == nil {
		return Decision{} // exceptions only
	}
	d := weigh(matches, override)
	if s.monitor {
		return observed(d)
	}
	return d
}
