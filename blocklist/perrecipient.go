package blocklist

import (
	"strings"

	"spamgate/blocklist/segment"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// A list with entries for recipients ([List.PerRecipient]) holds each entry under a pair of
// keys, the recipient's and the sender's, and each recipient under a pair without a sender.
// The sides are separated by a tab, which no key has in it.
const pairSeparator = '\t'

// appendPair appends the key of an entry for a recipient.
func appendPair(b []byte, recipient string, sender []byte) []byte {
	return append(append(append(b, recipient...), pairSeparator), sender...)
}

// splitPair returns both sides of a pair.
func splitPair(key string) (recipient, sender string) {
	recipient, sender, _ = strings.Cut(key, string(pairSeparator))
	return recipient, sender
}

// PerRecipient reports whether a list of the View has entries for recipients.
func (v *View) PerRecipient() bool { return v.perRecipient }

// RecipientKeys returns the keys under which lists of the View hold entries for a recipient,
// the most specific first.
func (v *View) RecipientKeys(r sender.Address) ([]string, error) {
	if !v.perRecipient || r.IsNull() {
		return nil, nil
	}
	var keys []string
	var pair []byte
	walk := r.Walk(nil)
	for key, ok := walk.Next(); ok; key, ok = walk.Next() {
		pair = appendPair(pair[:0], string(key.Text), nil)
		if v.set.filter.mayContain(pair) {
			held, err := v.holds(pair)
			if err != nil {
				return nil, err
			}
			if held {
				keys = append(keys, string(key.Text))
			}
		}
	}
	return keys, nil
}

// holds reports whether a list of the View with entries for recipients holds a pair.
func (v *View) holds(pair []byte) (bool, error) {
	hash := v.set.key.Hash(pair)
	for i := range v.set.lists {
		l := &v.set.lists[i]
		if !l.PerRecipient || v.member != nil && !v.member[i] {
			continue
		}
		if held, err := l.index.segment.Has(hash, pair); held || err != nil {
			return held, err
		}
	}
	return false, nil
}

// searchFor notes in f what the lists with entries for recipients hold about a sender, for the
// recipient with these keys. The entry for the most specific key of the recipient counts.
func (v *View) searchFor(stage verdict.Stage, a sender.Address, kinds sender.KindSet, keys []string, f *lookupState) error {
	var pair []byte
	for _, recipient := range keys {
		walk := a.Walk(nil)
		walk.Only(kinds)
		for key, ok := walk.Next(); ok; key, ok = walk.Next() {
			pair = appendPair(pair[:0], recipient, key.Text)
			if !v.set.filter.mayContain(pair) {
				continue
			}
			if _, err := v.confirmKey(f, stage, sender.Key{Kind: key.Kind, Rank: key.Rank, Text: pair}); err != nil {
				return err
			}
		}
	}
	return nil
}

// kindsIn returns the kinds of senders in a list that lookups have to look for without a
// recipient.
func kindsIn(l *List, s *segment.Segment) sender.KindSet {
	if l.PerRecipient {
		return 0
	}
	return sender.KindSet(s.Kinds())
}
