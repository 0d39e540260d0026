// Package listcompare compares whole lists: which entries they share or cover, and in which
// entries two of them differ.
package listcompare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"sync"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/sender"
	"spamgate/internal/joined"
	"spamgate/internal/listfiles"
)

// OverlapReport is the result of comparing lists with each other.
type OverlapReport struct {
	Lists  []overlapList  `json:"lists"`
	Common []overlapPair  `json:"common"`
	Within []overlapWider `json:"covered_by_broader"`
}

type overlapList struct {
	List     string `json:"list"`
	Type     string `json:"type"`
	Entries  uint64 `json:"entries"` // different ones
	Repeated uint64 `json:"repeated"`
}

// overlapPair counts the entries that two lists have in common.
type overlapPair struct {
	A        string   `json:"a"`
	B        string   `json:"b"`
	Entries  uint64   `json:"entries"`
	OfA      float64  `json:"percent_of_a"`
	OfB      float64  `json:"percent_of_b"`
	Examples []string `json:"examples"`
}

// overlapWider counts the entries of a list that a broader entry of this or another list
// covers.
type overlapWider struct {
	List     string        `json:"list"`
	By       string        `json:"by"`
	Entries  uint64        `json:"entries"`
	Percent  float64       `json:"percent"`
	Examples []overlapCase `json:"examples"`
}

type overlapCase struct {
	Entry string `json:"entry"`
	By    string `json:"by"`
}

// maxExamples bounds the examples of each.
const maxExamples = 3

// Overlap compares lists with each other.
type Overlap struct {
	lists    []*listfiles.List
	key      *segment.Key
	segments []*segment.Segment
	present  []hashBits // a bit for each entry's hash, to spare most look-ups

	mu     sync.Mutex
	common [][]overlapPair  // [i][j], i < j
	within [][]overlapWider // [i][j]
}

// NewOverlap begins a comparison of lists. Their segments have the key.
func NewOverlap(lists []*listfiles.List, key *segment.Key) *Overlap {
	return &Overlap{lists: lists, key: key}
}

// Add adds the entries of the next of the lists.
func (p *Overlap) Add(s *segment.Segment) {
	p.segments = append(p.segments, s)
	p.present = append(p.present, newHashBits(s.Len()))
	p.common = append(p.common, make([]overlapPair, len(p.lists)))
	p.within = append(p.within, make([]overlapWider, len(p.lists)))
}

// shards is the number of hash ranges that are compared in parallel.
const shards = 256

// hashBits is a set of hashes with false positives; it takes two to four bytes for each.
// Different shards have different words, so they can add hashes at the same time.
type hashBits struct {
	words []uint64
	shift int
}

func newHashBits(n uint64) hashBits {
	size := max(bits.Len64(16*n), bits.Len(shards*64)) // as a power of two
	return hashBits{make([]uint64, 1<<size/64), 64 - size}
}

func (b hashBits) add(hash uint64) {
	i := hash >> b.shift
	b.words[i/64] |= 1 << (i % 64)
}

func (b hashBits) mayHave(hash uint64) bool {
	i := hash >> b.shift
	return b.words[i/64]>>(i%64)&1 != 0
}

// Compare collects all hashes, and then counts.
func (p *Overlap) Compare(ctx context.Context, show func(done float64)) error {
	if err := p.eachShard(ctx, p.note, func(float64) {}); err != nil {
		return err
	}
	return p.eachShard(ctx, p.shard, show)
}

// note adds one range of hashes to present.
func (p *Overlap) note(n int) error {
	for i, s := range p.segments {
		from, to := shardRange(n)
		err := s.Scan(from, to, func(hash uint64, _ []byte) bool {
			p.present[i].add(hash)
			return true
		})
		if err != nil {
			return fmt.Errorf("list %s: %w", p.lists[i].Name, err)
		}
	}
	return nil
}

// eachShard runs work for each range of hashes, on all processors.
func (p *Overlap) eachShard(ctx context.Context, work func(shard int) error, show func(done float64)) error {
	next := make(chan int)
	failed := make(chan error, runtime.GOMAXPROCS(0))
	var running joined.Group
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for range cap(failed) {
		running.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					stop() // nobody else may take shards
					panic(p)
				}
			}()
			for shard := range next {
				if err := work(shard); err != nil {
					failed <- err
					stop()
					return
				}
			}
		})
	}
	for shard := range shards {
		select {
		case next <- shard:
			show(float64(shard) / shards)
		case <-ctx.Done():
		}
	}
	close(next)
	running.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return context.Cause(ctx)
	}
}

// shardRange returns the n-th range of hashes, including both ends.
func shardRange(n int) (from, to uint64) {
	const width = math.MaxUint64/shards + 1
	from = uint64(n) * width
	return from, from + (width - 1)
}

// shard counts the entries of one range of hashes.
func (p *Overlap) shard(n int) error {
	from, to := shardRange(n)
	for i, s := range p.segments {
		t := &overlapTally{Overlap: p, list: i}
		if err := errors.Join(s.Scan(from, to, t.entry), t.failed); err != nil {
			return fmt.Errorf("list %s: %w", p.lists[i].Name, err)
		}
	}
	return nil
}

// overlapTally counts the entries of one list.
type overlapTally struct {
	*Overlap
	list   int
	failed error
}

// has reports whether a list has an entry, exceptions apart.
func (t *overlapTally) has(list int, hash uint64, key []byte) bool {
	plain, _ := t.find(list, hash, key)
	return plain
}

// find reports whether a list has an entry or an exception.
func (t *overlapTally) find(list int, hash uint64, key []byte) (plain, exception bool) {
	if !t.present[list].mayHave(hash) {
		return false, false
	}
	r, ok, err := t.segments[list].Lookup(hash, key)
	if err != nil {
		t.failed = err
	}
	return ok && !r.Exception, ok && r.Exception
}

// entry counts one entry.
func (t *overlapTally) entry(hash uint64, key []byte) bool {
	own := t.list
	if t.segments[own].Exceptions() > 0 && !t.has(own, hash, key) {
		return t.failed == nil
	}
	for j := own + 1; j < len(t.lists); j++ {
		if t.has(j, hash, key) {
			t.mu.Lock()
			pair := &t.common[own][j]
			pair.Entries++
			pair.Examples = keepFirst(pair.Examples, string(key), strings.Compare)
			t.mu.Unlock()
		}
	}
	t.broader(string(key), hash)
	return t.failed == nil
}

// broader counts an entry once for each list that has a broader one, unless an exception of that
// list cancels it.
func (t *overlapTally) broader(key string, hash uint64) {
	covering := listfile.Covering(key, listfile.KindOf(key))
	for j, l := range t.lists {
		if !Covers(l.List, t.lists[t.list].List) || t.segments[j].Kinds()&broadKinds == 0 {
			continue
		}
		if _, exception := t.find(j, hash, []byte(key)); exception {
			continue
		}
		for _, by := range covering {
			plain, exception := t.find(j, t.key.Hash([]byte(by)), []byte(by))
			if exception {
				break
			}
			if plain {
				t.mu.Lock()
				wider := &t.within[t.list][j]
				wider.Entries++
				wider.Examples = keepFirst(wider.Examples, overlapCase{key, by}, func(a, b overlapCase) int {
					return strings.Compare(a.Entry, b.Entry)
				})
				t.mu.Unlock()
				break
			}
		}
	}
}

// keepFirst adds an example and keeps the smallest ones, so that each run shows the same.
func keepFirst[T any](examples []T, single T, compare func(a, b T) int) []T {
	pos, _ := slices.BinarySearchFunc(examples, single, compare)
	if pos == maxExamples {
		return examples
	}
	examples = slices.Insert(examples, pos, single)
	return examples[:min(len(examples), maxExamples)]
}

// broadKinds is the set of kinds that can cover others, as segments store it.
const broadKinds = ^uint8(1<<sender.KindAddress | 1<<sender.KindNull)

// Report returns the result for one list, or for all if only is "".
func (p *Overlap) Report(only string) *OverlapReport {
	r := &OverlapReport{Common: []overlapPair{}, Within: []overlapWider{}}
	percent := func(n uint64, index *segment.Segment) float64 {
		return 100 * float64(n) / float64(index.Len()-index.Exceptions())
	}
	for i, l := range p.lists {
		s := p.segments[i]
		r.Lists = append(r.Lists, overlapList{l.Name, l.Type, s.Len() - s.Exceptions(), s.Duplicates()})
		for j, m := range p.lists {
			if only != "" && l.Name != only && m.Name != only {
				continue
			}
			if pair := p.common[i][j]; pair.Entries > 0 {
				pair.A, pair.B = l.Name, m.Name
				pair.OfA, pair.OfB = percent(pair.Entries, s), percent(pair.Entries, p.segments[j])
				r.Common = append(r.Common, pair)
			}
			if wider := p.within[i][j]; wider.Entries > 0 {
				wider.List, wider.By, wider.Percent = l.Name, m.Name, percent(wider.Entries, s)
				r.Within = append(r.Within, wider)
			}
		}
	}
	return r
}
