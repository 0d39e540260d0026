package rhsbl

import (
	"context"
	"errors"
	"math"
	"slices"

	"spamgate/blocklist"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/verdict"
)

// index holds what the exact indexes of the lists cannot answer: whether there are names
// below a name, and which address has a hash. It is made anew when a list changes, and until
// then belongs to an earlier Set. It never decides: the lists of the present Set do.
type index struct {
	state      *state
	generation uint64 // of the Set
	lists      []listIndex

	// whole says that no list was left out for an error.
	whole bool
}

// listIndex is that of one version of a list.
type listIndex struct {
	name    string
	digest  [32]byte // of the entries
	key     *segment.Key
	parents *parents // nil for an allow list: a name that it has is not listed
	hashes  *hashes  // nil without a zone of hashes
}

// keepIndex makes the index, and again for each new Set and for new settings, until Shutdown.
func (s *Server) keepIndex() {
	for {
		ctx, cancel := context.WithCancel(s.ctx)
		s.interrupt.Store(&cancel)
		st, set := s.state.Load(), s.config.Store.Set()
		x := s.makeIndex(s.ctx, st, set)
		if s.ctx.Err() != nil {
			cancel()
			return
		}
		if s.index.Swap(x) == nil {
			close(s.indexed)
		}
		_, err := s.config.Store.Await(ctx, set.Generation()+1)
		applied := ctx.Err() != nil
		cancel()
		if s.ctx.Err() != nil || err != nil && !applied {
			return // the Store is closed
		}
	}
}

// makeIndex indexes the lists that are not indexed yet.
func (s *Server) makeIndex(ctx context.Context, st *state, set *blocklist.Set) *index {
	x := &index{state: st, generation: set.Generation(), whole: true}
	old := s.index.Load()
	for _, l := range set.Stats().Lists {
		if !st.serves(&l) {
			continue
		}
		seg, key, _, ok := set.Index(l.Name)
		if !ok {
			continue
		}
		previous := old.list(l.Name)
		made, err := makeListIndex(ctx, previous, &l, seg, key, st.HashedZone != "")
		if err != nil {
			if ctx.Err() == nil {
				s.config.Log.Warn("list not indexed for DNS", "listener", s.config.Name, "list", l.Name, "err", err)
			}
			x.whole = false
			if previous == nil {
				continue
			}
			made = *previous
		}
		x.lists = append(x.lists, made)
	}
	return x
}

// serves reports whether a list's entries can be in the zones: those of an allow list only as
// hashes. No question names a recipient.
func (st *state) serves(l *blocklist.ListStats) bool {
	stage := verdict.Envelope
	if st.asksHeader() {
		stage = verdict.AllStages
	}
	return (l.Type == blocklist.Block || st.HashedZone != "") && !l.PerRecipient && l.Stages&stage != 0 && (len(st.Lists) == 0 || slices.Contains(st.Lists, l.Name))
}

// list returns the index of a list; nil if there is none.
func (x *index) list(name string) *listIndex {
	if x == nil {
		return nil
	}
	for i := range x.lists {
		if x.lists[i].name == name {
			return &x.lists[i]
		}
	}
	return nil
}

// makeListIndex indexes a list, as far as the previous index is not of the same entries.
func makeListIndex(ctx context.Context, previous *listIndex, list *blocklist.ListStats, seg *segment.Segment, key *segment.Key, hashed bool) (l listIndex, err error) {
	l = listIndex{name: list.Name, digest: seg.Digest(), key: key}
	same := previous != nil && previous.digest == l.digest && *previous.key == *key
	switch {
	case list.Type != blocklist.Block:
	case same && previous.parents != nil:
		l.parents = previous.parents
	default:
		if l.parents, err = newParents(ctx, seg, key); err != nil {
			return l, err
		}
	}
	switch {
	case !hashed:
	case same && previous.hashes != nil:
		l.hashes = previous.hashes
	default:
		l.hashes, err = newHashes(ctx, seg)
	}
	return l, err
}

// mayHaveBelow reports whether there may be listed names below a name that is not listed
// itself. It is true while that is not known: a name that exists without records is as good
// for those who ask, and resolvers do not take it for proof that nothing is below.
func (s *Server) mayHaveBelow(st *state, domain string) bool {
	x := s.index.Load()
	if x == nil || x.state != st || !x.whole || x.generation != s.config.Store.Set().Generation() {
		return true
	}
	for i := range x.lists {
		if p := x.lists[i].parents; p != nil && p.mayContain(x.lists[i].key.Hash([]byte(domain))) {
			return true
		}
	}
	return false
}

// findHash looks up the hash of an address.
func (s *Server) findHash(st *state, name string) found {
	sum, ok := parseSum(name)
	if !ok {
		return found{}
	}
	x := s.index.Load()
	if x == nil || x.state.HashedZone == "" {
		return found{failed: true} // not indexed yet
	}
	for i := range x.lists {
		h := x.lists[i].hashes
		if h == nil {
			continue
		}
		address, err := h.find(sum)
		if err != nil {
			return found{failed: true}
		}
		if address == "" {
			continue
		}
		v, err := st.judge(verdict.ReadAddress, address)
		if err != nil {
			return found{failed: isFailure(err)}
		}
		return st.foundAddress(v)
	}
	return found{}
}

// isFailure reports whether an error is ours, and not that the name is no address.
func isFailure(err error) bool { return errors.Is(err, verdict.ErrNoAnswer) }

// scan calls fn with each key of a segment until the context ends.
func scan(ctx context.Context, seg *segment.Segment, fn func(hash uint64, key []byte)) error {
	n := 0
	err := seg.Scan(0, math.MaxUint64, func(hash uint64, key []byte) bool {
		fn(hash, key)
		n++
		return n%4096 != 0 || ctx.Err() == nil
	})
	if err == nil {
		err = ctx.Err()
	}
	return err
}
