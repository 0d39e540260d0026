package blocklist

import (
	"spamgate/blocklist/segment"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// This file looks into lists with entries for recipients. Such an entry has two sides, and
// is found under a key of both: see package segment. Each recipient's side has a marker,
// so that nothing is looked up for a recipient who has no entries.

// PerRecipient reports whether a list of the View has entries for recipients.
func (v *View) PerRecipient() bool { return len(v.forLists) > 0 }

// RecipientKeys returns the keys of a recipient for which lists of the View hold entries,
// most specific first. If no list has entries for recipients, it returns nil at once. It is
// not counted as a lookup.
func (v *View) RecipientKeys(r sender.Address) ([]string, error) {
	if len(v.forLists) == 0 || r.IsNull() {
		return nil, nil
	}
	var scratch, marker [keyScratch]byte
	var keys []string
	walk := r.Walk(scratch[:0])
	for key, ok := walk.Next(); ok; key, ok = walk.Next() {
		text := segment.AppendFor(marker[:0], key.Text, "")
		if !v.mayContain(text) {
			continue
		}
		held, err := v.marks(text)
		if err != nil {
			return nil, err
		}
		if held {
			keys = append(keys, string(key.Text))
		}
	}
	return keys, nil
}

// marks reports whether a list of the View holds a marker.
func (v *View) marks(marker []byte) (bool, error) {
	if v.changes != nil && v.adds(marker) {
		return true, nil
	}
	hash := v.set.key.Hash(marker)
	for _, i := range v.forLists {
		l := &v.set.lists[i]
		if held, err := l.index.segment.Has(hash, marker); err != nil {
			return false, v.set.failed(l, err)
		} else if held {
			return true, nil
		}
	}
	return false, nil
}

// searchFor looks a sender up in the lists with entries for recipients, under the keys of one
// recipient, and notes in f what they hold.
//
// Within a list the recipient's side counts first. So the first key of both sides that a list
// holds is its match, or an exception that cancels whatever would follow.
func (v *View) searchFor(stage verdict.Stage, a sender.Address, kinds sender.KindSet, recipient []string, f *lookupState) error {
	if err := stage.Validate(); err != nil {
		return err
	}
	if kinds &= v.forKinds[stage]; kinds == 0 {
		return nil
	}
	var scratch [keyScratch]byte
	for _, r := range recipient {
		walk := a.Walk(scratch[:0]) // anew, since each key may overwrite another's text
		walk.Only(kinds)
		for key, ok := walk.Next(); ok; key, ok = walk.Next() {
			if found, err := v.confirmFor(f, stage, r, key); err != nil {
				return err
			} else if found && v.settledFor(f, stage) {
				return nil
			}
		}
	}
	return nil
}

// confirmFor looks a sender's key up for a key of a recipient, and reports whether a list
// holds it.
func (v *View) confirmFor(f *lookupState, stage verdict.Stage, recipient string, key sender.Key) (bool, error) {
	s := v.set
	var scratch [2 * keyScratch]byte
	text := segment.AppendFor(scratch[:0], recipient, key.Text)
	if !v.mayContain(text) {
		return false, nil
	}
	counters := s.counters
	if f.uncounted {
		counters = new(Counters)
	}
	counters.maybes.Add(1)
	hash, confirmed := s.key.Hash(text), false
	for i := range s.lists {
		if !s.lists[i].PerRecipient {
			continue
		}
		held, err := v.confirmIn(f, stage, i, hash, sender.Key{Rank: key.Rank, Text: text})
		if err != nil {
			return false, err
		}
		confirmed = confirmed || held
	}
	if !confirmed {
		counters.falsePositives.Add(1)
	}
	return confirmed, nil
}

// settledFor reports whether no list with entries for recipients may yet find something.
func (v *View) settledFor(f *lookupState, stage verdict.Stage) bool {
	for _, i := range v.forLists {
		l := &v.set.lists[i]
		if v.counts(i, stage) && !(f.blocks && l.Type == Allow) && (f.lists == nil || !f.lists[i].settled) {
			return false
		}
	}
	return true
}
