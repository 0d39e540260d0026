package blocklist

import (
	"fmt"
	"time"

	"spamgate/blocklist/segment"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// keyScratch is the size of the scratch in which a lookup makes keys: enough for any address
// of RFC 5321 (64 octets, "@", 255), with a tag for half of that. Longer addresses cost an
// allocation.
const keyScratch = 384

// Lookup returns what the lists say of a sender at one stage. For a sender whom
// no list knows it does not allocate.
//
// An error is our own failure, such as a damaged index or an unknown stage. It
// says nothing of the sender, who should try again later.
func (s *Set) Lookup(stage verdict.Stage, a sender.Address) (verdict.Verdict, error) {
	return s.all.Lookup(stage, a)
}

// Lookup returns what [Set.Lookup] would return if there were no lists but those that
// count. It counts towards the Set's lookups: a key that another list holds is not a
// false positive.
func (v *View) Lookup(stage verdict.Stage, a sender.Address) (verdict.Verdict, error) {
	found, err := v.Find(stage, a, FindOptions{})
	if err != nil || found.matches == nil {
		return verdict.Verdict{}, err
	}
	return Decide([]Found{found}, nil), nil
}

// DomainKinds are the kinds of entries that do not name a local part.
const DomainKinds sender.KindSet = 1<<sender.KindAtDomain | 1<<sender.KindDomain | 1<<sender.KindSubdomains

// search looks a sender up, and notes in f what the lists hold.
func (v *View) search(stage verdict.Stage, a sender.Address, kinds sender.KindSet, f *lookupState) error {
	if err := stage.Validate(); err != nil {
		return err
	}
	s := v.set
	counters := s.counters
	if f.uncounted {
		counters = new(Counters)
	}
	counters.lookups.Add(1)
	var scratch [keyScratch]byte
	kinds &= v.kinds[stage]
	walk := a.Walk(scratch[:0])
	walk.Only(kinds)
	ruledOut := uint64(0)
	if s.filter.looks() && v.changes == nil {
		var all bool
		if ruledOut, all = s.filter.look(walk); all {
			return nil // as for nearly every clean sender
		}
		walk = a.Walk(scratch[:0]) // once more, since each key may overwrite another's text
		walk.Only(kinds)
	}
	for ; !f.complete(); ruledOut >>= 1 {
		key, ok := walk.Next()
		if !ok {
			break
		}
		if ruledOut&1 != 0 || !v.mayContain(key.Text) {
			continue
		}
		counters.maybes.Add(1)
		confirmed, err := v.confirmKey(f, stage, key)
		if err != nil {
			return err
		}
		if !confirmed {
			counters.falsePositives.Add(1)
		}
	}
	return nil
}

// lookupState is what one lookup has found so far.
type lookupState struct {
	lists  []listMatch // by list; nil before the first
	open   int         // lists that may yet find something
	blocks bool        // allow lists and exceptions do not count

	uncounted bool // it counts neither as a lookup nor as a hit of an entry
}

// listMatch is a list's most specific entry for the sender.
type listMatch struct {
	settled   bool // less specific keys no longer matter
	exception bool // the entry is an exception: the list has no match
	match     verdict.Match
}

func (f *lookupState) complete() bool { return f.lists != nil && f.open == 0 }

// settle notes the entry of a list that counts, and reports whether it is the list's
// first.
func (f *lookupState) settle(v *View, stage verdict.Stage, list int, what listMatch) bool {
	if f.lists == nil {
		f.lists = make([]listMatch, len(v.set.lists))
		for i := range f.lists {
			if l := &v.set.lists[i]; v.counts(i, stage) && l.Asked == nil && !l.PerRecipient && !(f.blocks && l.Type == Allow) {
				f.open++
			}
		}
	}
	if f.lists[list].settled {
		return false
	}
	what.settled = true
	f.lists[list] = what
	if l := &v.set.lists[list]; l.Asked == nil && !l.PerRecipient {
		f.open--
	}
	return true
}

// confirmKey looks a key that the filter may contain up in every list, and reports
// whether any holds it. It asks the lists that no longer matter, or do not count, too:
// what they hold is not a false positive.
//
// Keys come most specific first. So the first that a list holds is its match, or an
// exception that cancels whatever would follow.
func (v *View) confirmKey(f *lookupState, stage verdict.Stage, key sender.Key) (bool, error) {
	s := v.set
	if !s.confirm { // with one list, and that counts: else no key is asked for
		l := &s.lists[0]
		m := l.newMatch(stage, string(key.Text), key.Rank)
		m.Unconfirmed = true
		f.settle(v, stage, 0, listMatch{match: m})
		return true, nil
	}
	confirmed := false
	hash := s.key.Hash(key.Text)
	for i := range s.lists {
		l := &s.lists[i]
		if l.PerRecipient {
			continue // it has no such keys
		}
		held, err := v.confirmIn(f, stage, i, hash, key)
		if err != nil {
			return false, err
		}
		confirmed = confirmed || held
	}
	return confirmed, nil
}

// confirmIn looks a key up in one list, and reports whether that holds it.
func (v *View) confirmIn(f *lookupState, stage verdict.Stage, list int, hash uint64, key sender.Key) (bool, error) {
	s, l := v.set, &v.set.lists[list]
	if !v.counts(list, stage) {
		there, err := l.index.segment.Has(hash, key.Text)
		if err != nil {
			return false, s.failed(l, err)
		}
		return there, nil
	}
	e, ok, err := v.record(list, hash, key.Text)
	if err != nil {
		return false, err
	}
	if !ok || e.Until != 0 && e.Until <= time.Now().Unix() || f.blocks && (e.Exception || l.Type == Allow) {
		return ok, nil
	}
	what := listMatch{exception: e.Exception}
	if !e.Exception {
		what.match = l.match(&e, stage, key.Rank)
	}
	if f.settle(v, stage, list, what) && s.onHit != nil && !f.uncounted {
		s.onHit(l.Name, hash)
	}
	return true, nil
}

// newMatch returns a match of the list by its key, without what the index has.
func (l *setList) newMatch(stage verdict.Stage, key string, rank int32) verdict.Match {
	m := verdict.Match{
		List:         l.Name,
		Entry:        key,
		PublicReason: l.PublicReason,
		Allow:        l.Type == Allow,
		ProvenBy:     l.ProvenBy,
		Action:       l.action(stage),
		Rank:         rank,
	}
	if m.Action == verdict.Monitor {
		m.Action, m.Monitor = verdict.Accept, true
	}
	return m
}

// match returns the match of an entry.
func (l *setList) match(e *segment.Record, stage verdict.Stage, rank int32) verdict.Match {
	m := l.newMatch(stage, e.Key, rank)
	m.For, m.Line, m.Reason, m.Note = e.For, e.Line, e.Reason, e.Note
	if e.File < len(l.index.files) {
		m.File = l.index.files[e.File]
	}
	if e.Defer && m.Action == verdict.Reject {
		m.Action = verdict.Defer
	}
	return m
}

// failed returns the error of a lookup that met a damaged index. The first one
// calls OnDamage.
func (s *Set) failed(l *setList, err error) error {
	if !l.index.MarkDamaged() && s.onDamage != nil {
		s.onDamage()
	}
	return fmt.Errorf("looking into list %q: %w", l.Name, err)
}
