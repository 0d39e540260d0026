package partial

import (
	"container/list"
	"iter"
	"slices"
	"time"
)

// maxPerPair bounds the messages that are remembered for one sender and recipient.
const maxPerPair = 16

// entry is an Entry in the index.
type entry struct {
	Entry
	pair   pair
	since  int64 // when it was made, in seconds since 1970
	turns  int   // transactions that it was admitted to
	used   int64 // when the client came for the message last, in seconds since 1970
	waited bool  // it was told to wait, and the message has had no turn since
	saved  bool  // it is in the file
	seen   bool  // it was found in the file that is being read
	place  *list.Element
}

// index is the entries by what they are looked for. The caller sees to it that one
// goroutine uses it at a time.
type index struct {
	byPair    map[pair][]*entry
	byMessage map[Sum][]*entry
	all       *list.List // of *entry, the oldest first
}

func newIndex() index {
	return index{byPair: map[pair][]*entry{}, byMessage: map[Sum][]*entry{}, all: list.New()}
}

// find returns the entry of a recipient and a message, or nil.
func (x *index) find(p pair, m Sum) *entry {
	for _, e := range x.byPair[p] {
		if e.Message == m {
			return e
		}
	}
	return nil
}

// put adds an entry, or changes the state of the one that is there, and returns it.
// An entry's age is that of the first.
func (x *index) put(p pair, state Entry, since int64) *entry {
	if e := x.find(p, state.Message); e != nil {
		e.Entry, e.saved, e.used = state, false, max(e.used, since)
		return e
	}
	if of := x.byPair[p]; len(of) >= maxPerPair {
		x.remove(of[0])
	}
	e := &entry{Entry: state, pair: p, since: since, used: since}
	e.place = x.all.PushBack(e)
	x.byPair[p] = append(x.byPair[p], e)
	x.byMessage[e.Message] = append(x.byMessage[e.Message], e)
	return e
}

// remove forgets an entry.
func (x *index) remove(e *entry) {
	x.all.Remove(e.place)
	drop(x.byPair, e.pair, e)
	drop(x.byMessage, e.Message, e)
}

func drop[K comparable](from map[K][]*entry, key K, e *entry) {
	rest := slices.DeleteFunc(from[key], func(other *entry) bool { return other == e })
	if len(rest) == 0 {
		delete(from, key)
		return
	}
	from[key] = rest
}

// prune forgets entries that are older than oldest, and the oldest ones of more
// than limit. It returns how many those are.
func (x *index) prune(oldest time.Time, limit int) (crowded int) {
	for first := x.all.Front(); first != nil; first = x.all.Front() {
		e := first.Value.(*entry)
		switch {
		case e.since < oldest.Unix():
		case x.all.Len() > limit:
			crowded++
		default:
			return crowded
		}
		x.remove(e)
	}
	return crowded
}

// apply takes a line of the file in. What this process has learnt since, and not
// written yet, is newer.
func (x *index) apply(p pair, state Entry, since int64) {
	e := x.find(p, state.Message)
	switch {
	case e != nil && !e.saved:
		e.seen = true
		return
	case state.State != Settled:
		e = x.put(p, state, since)
		e.saved, e.seen = true, true
	case e != nil:
		x.remove(e)
	}
}

// dropUnseen forgets what was in the file before, and is not in the one that took its
// place.
func (x *index) dropUnseen() {
	for e := range x.entries() {
		if e.saved && !e.seen {
			x.remove(e)
		}
	}
}

// entries are all entries, the oldest first. The one that is given may be removed.
func (x *index) entries() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for place := x.all.Front(); place != nil; {
			e := place.Value.(*entry)
			place = place.Next()
			if !yield(e) {
				return
			}
		}
	}
}

// turn reports whether a recipient goes before the others of its messages. It waits once
// for each turn of a message: until the message comes it is admitted with any other. What
// was not used since oldest keeps nobody waiting.
func (x *index) turn(p pair, oldest time.Time) bool {
	of := x.byPair[p]
	for _, e := range of {
		if !e.waited && e.used >= oldest.Unix() && x.otherFirst(e, oldest) {
			for _, e := range of {
				e.waited = true
			}
			return false
		}
	}
	return true
}

// otherFirst reports whether a recipient of the same message, in another state,
// had fewer turns, or as many while its state comes first.
func (x *index) otherFirst(e *entry, oldest time.Time) bool {
	return slices.ContainsFunc(x.byMessage[e.Message], func(other *entry) bool {
		return other.used >= oldest.Unix() && other.State != e.State && (other.turns < e.turns || other.turns == e.turns && other.State < e.State)
	})
}
