package hashattack

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
)

// Guess is the result of a search under a key that the attacker chose.
type Guess struct {
	Names    []string `json:"names"`
	Examined uint64   `json:"examined"` // names tried

	// MayContain is the answer for the target of a real filter under the guessed
	// key with the names.
	MayContain bool `json:"may_contain"`
}

// maxExamined is the greatest number of names that the search tries. On average it
// needs 2^28/11 names for a certain bit, and three times as many for all eleven, so
// that this is hardly ever reached.
const maxExamined = 1 << 30

// The search tries names in rounds, whose results do not depend on the number of
// processors.
const (
	blockNames  = 1 << 14
	roundBlocks = 64
)

// guessKey searches for names that make the target a maybe under a known key.
func guessKey(ctx context.Context, target string, f hashfamily.Family, o KeyedOptions) (*Guess, error) {
	return bruteForce(ctx, target, f, o.Seed, o.Progress)
}

// bruteForce tries names until they set all bits of the target under a family.
func bruteForce(ctx context.Context, target string, f hashfamily.Family, seed uint64, progress func(done, total int)) (*Guess, error) {
	s := newScan(target, f, seed)
	total := len(s.open)
	step := stepper(progress, total)
	for round := uint64(0); len(s.open) > 0 && s.examined < maxExamined; round++ {
		if err := s.round(ctx, round); err != nil {
			return nil, err
		}
		for range total - len(s.open) - s.reported {
			step()
			s.reported++
		}
	}
	g := &Guess{Names: s.names, Examined: s.examined}
	filter, err := bloom.New(f)
	if err != nil {
		return nil, err
	}
	for _, name := range g.Names {
		filter.Add([]byte(name))
	}
	g.MayContain = filter.MayContain([]byte(target))
	return g, nil
}

// scan tries name after name for one that sets a bit of the target.
type scan struct {
	target   string
	family   hashfamily.Family
	ending   string
	first    uint64          // the number that the first name spells
	open     map[uint64]bool // bits not set yet
	marks    [1 << 12]bool   // low bits of those in open, for a quick test
	names    []string
	examined uint64
	reported int // steps
}

func newScan(target string, f hashfamily.Family, seed uint64) *scan {
	s := &scan{target: target, family: f, ending: ending(target), open: map[uint64]bool{}}
	// Eleven digits of base 36, the first of which is not 0.
	s.first = 4e15 + rand.New(rand.NewPCG(seed, 1)).Uint64N(1e16)
	if checkName(string(s.name(nil, 0)), target) != nil { // a public suffix, as any name.ck is
		s.ending = ".0" + s.ending
	}
	for _, i := range f.AppendIndices(nil, []byte(target)) {
		s.open[i], s.marks[i%uint64(len(s.marks))] = true, true
	}
	return s
}

// name appends the n-th name.
func (s *scan) name(dst []byte, n uint64) []byte {
	return append(strconv.AppendUint(dst, s.first+n, 36), s.ending...)
}

// round tries the names of a round and keeps those that set an open bit.
func (s *scan) round(ctx context.Context, round uint64) error {
	var hits [roundBlocks][]uint64
	var next atomic.Int64
	var running sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		running.Go(func() {
			for b := next.Add(1) - 1; b < roundBlocks && ctx.Err() == nil; b = next.Add(1) - 1 {
				hits[b] = s.block((round*roundBlocks + uint64(b)) * blockNames)
			}
		})
	}
	running.Wait()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("interrupted: %w", err)
	}
	s.examined += roundBlocks * blockNames
	for _, block := range hits {
		for _, n := range block {
			s.keep(n)
		}
	}
	return nil
}

// block returns the numbers of the names of a block that set an open bit.
func (s *scan) block(first uint64) []uint64 {
	var hits []uint64
	var name []byte
	indices := make([]uint64, 0, s.family.K())
	for n := first; n < first+blockNames; n++ {
		name = s.name(name[:0], n)
		indices = s.family.AppendIndices(indices[:0], name)
		for _, i := range indices {
			if s.marks[i%uint64(len(s.marks))] && s.open[i] {
				hits = append(hits, n)
				break
			}
		}
	}
	return hits
}

// keep adds a name to the set, if it still sets an open bit.
func (s *scan) keep(n uint64) {
	name := string(s.name(nil, n))
	if checkName(name, s.target) != nil {
		return
	}
	before := len(s.open)
	for _, i := range s.family.AppendIndices(nil, []byte(name)) {
		delete(s.open, i)
	}
	if len(s.open) < before {
		s.names = append(s.names, name)
	}
}
