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
	since  int64 // when it was made, in Unix seconds
	turns  int   // transactions that the recipient was admitted to
	used   int64 // when the client last came back for the message, in Unix seconds
	waited bool  // the recipient had to wait, and the message has had no turn since
	saved  bool  // it is in the file
	inFile bool  // it was found in the file that is being read
	elem   *list.Element
}

// index finds entries by pair and by message. It is not safe for concurrent use.
type index struct {
	byPair    map[pair][]*entry
	byMessage map[Sum][]*entry
	all       *list.List // of *entry, the oldest first
}

func newIndex() index {
	return index{byPair: map[pair][]*entry{}, byMessage: map[Sum][]*entry{}, all: list.New()}
}

// find returns the entry of a pair and a message, or nil if there is none.
func (x *index) find(p pair, m Sum) *entry {
	for _, e := range x.byPair[p] {
		if e.Message == m {
			return e
		}
	}
	return nil
}

// put adds an entry, or changes the state of the existing one, which keeps its age. It
// returns the entry.
func (x *index) put(p pair, state Entry, since int64) *entry {
	if e := x.find(p, state.Message); e != nil {
		e.Entry, e.saved, e.used = state, false, max(e.used, since)
		return e
	}
	if entries := x.byPair[p]; len(entries) >= maxPerPair {
		x.remove(entries[0])
	}
	e := &entry{Entry: state, pair: p, since: since, used: since}
	e.elem = x.all.PushBack(e)
	x.byPair[p] = append(x.byPair[p], e)
	x.byMessage[e.Message] = append(x.byMessage[e.Message], e)
	return e
}

func (x *index) remove(e *entry) {
	x.all.Remove(e.elem)
	drop(x.byPair, e.pair, e)
	drop(x.byMessage, e.Message, e)
}

// drop removes an entry from one of the maps.
func drop[K comparable](m map[K][]*entry, key K, e *entry) {
	m[key] = slices.DeleteFunc(m[key], func(other *entry) bool { return other == e })
	if len(m[key]) == 0 {
		delete(m, key)
	}
}

// prune removes entries that are older than oldest, then the oldest ones until at most
// limit are left. It returns how many it removed because of the limit.
func (x *index) prune(oldest time.Time, limit int) (excess int) {
	for first := x.all.Front(); first != nil; first = x.all.Front() {
		e := first.Value.(*entry)
		switch {
		case e.since < oldest.Unix():
		case x.all.Len() > limit:
			excess++
		default:
			return excess
		}
		x.remove(e)
	}
	return excess
}

// apply applies a line of the file. An entry that this process has changed and not yet
// written is newer than the line.
func (x *index) apply(p pair, state Entry, since int64) {
	e := x.find(p, state.Message)
	switch {
	case e != nil && !e.saved:
		e.inFile = true
		return
	case state.State != Settled:
		e = x.put(p, state, since)
		e.saved, e.inFile = true, true
	case e != nil:
		x.remove(e)
	}
}

// removeMissing removes the entries that were in the previous file and are not in the
// one that replaced it.
func (x *index) removeMissing() {
	for e := range x.entries() {
		if e.saved && !e.inFile {
			x.remove(e)
		}
	}
}

// entries returns all entries, the oldest first. The loop may remove the current one.
func (x *index) entries() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for elem := x.all.Front(); elem != nil; {
			e := elem.Value.(*entry)
			elem = elem.Next()
			if !yield(e) {
				return
			}
		}
	}
}

// turn reports whether a recipient may be admitted before the others of its messages. A
// recipient waits once for each turn of a message, and is then admitted with any message.
// Entries that were not used since oldest make nobody wait.
func (x *index) turn(p pair, oldest time.Time) bool {
	entries := x.byPair[p]
	for _, e := range entries {
		if !e.waited && e.used >= oldest.Unix() && x.otherFirst(e, oldest) {
			for _, e := range entries {
				e.waited = true
			}
			return false
		}
	}
	return true
}

// otherFirst reports whether another recipient of the message goes first: it is in
// another state and had fewer turns, or as many and its state comes first.
func (x *index) otherFirst(e *entry, oldest time.Time) bool {
	return slices.ContainsFunc(x.byMessage[e.Message], func(other *entry) bool {
		return other.used >= oldest.Unix() && other.State != e.State && (other.turns < e.turns || other.turns == e.turns && other.State < e.State)
	})
}
