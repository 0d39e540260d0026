package hashlab

import (
	"context"
	"math"
	"math/rand/v2"
)

// What a filter is measured with.
const (
	// splits is how many filters each rate is measured with, splitsFull in the
	// full run. They are counted in a byte, see tally.
	splits     = 20
	splitsFull = 30

	// queriesPerFilter is how many absent keys a filter is asked for at most.
	queriesPerFilter     = 40_000
	queriesPerFilterFull = 100_000

	// poolFactor bounds the part of a corpus that is hashed for one size, in
	// multiples of what one filter and its queries need.
	poolFactor = 3

	// minBits is the smallest filter.
	minBits = 1 << 10

	// maxMembers bounds the members of a filter, and so the memory of the splits:
	// enough for 2^24 bits and k = 7 at 5/4 of the capacity.
	maxMembers = 2_100_000
)

// wantedBits are the sizes of filters, as far as the corpus has the keys; the
// last one belongs to the full run.
var wantedBits = []uint64{1 << 16, 1 << 20, 1 << 24}

// parts of the capacity at which a filter is asked, rising.
var parts = []float64{0.25, 0.5, 0.75, 1, 1.25}

// shape is how a corpus of a certain size is measured with filters of m bits and
// k functions.
type shape struct {
	m       uint64
	k       int
	loads   []load
	full    int // the load that is the whole capacity
	pool    int // keys that are hashed
	queries int // of each filter
	splits  int
}

// load is a number of members.
type load struct {
	part float64 // of the capacity
	n    int
}

// place is where subjects are compared: keys of a corpus, and the splits into
// members and queries that all subjects share.
type place struct {
	shape
	corpus   string
	seed     uint64
	keys     [][]byte // of the corpus, or random ones of them
	splits   []*split
	asked    []uint8   // by key: of how many splits it is a query
	messages *messages // nil where none are asked
	passes   bool      // the pass rates of each function are measured here
}

// split is one random choice of members and queries, by their places in the
// place's keys. Each slice rises, so that memory is read in order.
type split struct {
	steps   [][]int32 // those that each load adds to the ones before
	queries []int32   // never members
	seed    uint64    // of the control of ideal hashes, which is another one in each filter
}

// capacity is how many keys fill m bits half by k functions: m·ln 2/k.
func capacity(m uint64, k int) int { return int(float64(m) * math.Ln2 / float64(k)) }

// minQueries is how many absent keys must be left beside n members.
func minQueries(n int) int { return max(250, n/8) }

// fits reports whether filters of m bits can be filled to the given part of
// their capacity from so many keys.
func fits(keys int, m uint64, k int, part float64) bool {
	n := int(part * float64(capacity(m, k)))
	return n <= maxMembers && n+minQueries(n) <= keys
}

// sizes are the numbers of bits that a corpus of so many keys is measured with:
// those wanted for which it has the keys, or else the largest for which it has.
func sizes(keys, k int, full bool) []uint64 {
	var all []uint64
	wanted := wantedBits
	if !full {
		wanted = wanted[:len(wanted)-1]
	}
	for _, m := range wanted {
		if fits(keys, m, k, 1) {
			all = append(all, m)
		}
	}
	if len(all) > 0 {
		return all
	}
	m := uint64(minBits)
	for fits(keys, 2*m, k, 1) {
		m *= 2
	}
	return []uint64{m}
}

// newShape plans for a corpus of so many keys.
func newShape(keys int, m uint64, k int, full bool) shape {
	s := shape{m: m, k: k, splits: splits}
	most := queriesPerFilter
	if full {
		s.splits, most = splitsFull, queriesPerFilterFull
	}
	for _, part := range parts {
		if part <= 1 || fits(keys, m, k, part) {
			s.loads = append(s.loads, load{part, int(part * float64(capacity(m, k)))})
		}
		if part == 1 {
			s.full = len(s.loads) - 1
		}
	}
	s.pool = min(keys, poolFactor*(s.top()+most))
	s.queries = min(most, s.pool-s.top())
	return s
}

// top is the most members of a filter.
func (s *shape) top() int { return s.loads[len(s.loads)-1].n }

// cost is roughly how many nanoseconds of one core a subject takes: to hash the
// keys, or to draw ideal indices for each filter, and to fill the filters and ask
// them.
func (s *shape) cost(ideal bool) float64 {
	hash := 30 * float64(s.pool*s.k)
	if ideal {
		hash = 60*float64(s.pool) + 4*float64(s.splits*(s.top()+s.queries)*s.k)
	}
	bit := 4.0
	if s.m > 1<<22 { // beyond the second cache
		bit = 8
	}
	return hash + float64(s.splits)*(bit*float64(s.top()*s.k)+30*float64(s.queries))
}

// newPlace makes the splits of a corpus.
func newPlace(ctx context.Context, c *Corpus, s shape, seed uint64) (*place, error) {
	p := &place{shape: s, corpus: c.Name, seed: seed, splits: make([]*split, s.splits)}
	p.keys = sample(p.stream("pool"), c.Keys, s.pool)
	if err := parallel(ctx, s.splits, func() func(int) {
		labels := make([]uint8, len(p.keys))
		return func(i int) { p.splits[i] = p.newSplit(p.stream("split", i), labels) }
	}); err != nil {
		return nil, err
	}
	p.asked = make([]uint8, len(p.keys))
	for _, s := range p.splits {
		for _, key := range s.queries {
			p.asked[key]++
		}
	}
	return p, nil
}

// stream is random numbers for something in this place.
func (p *place) stream(labels ...any) *rand.Rand {
	return stream(p.seed, append([]any{p.corpus, p.m, p.k}, labels...)...)
}

// sample is n random ones of the keys, in their order; all where there are no
// more.
func sample(r *rand.Rand, keys [][]byte, n int) [][]byte {
	if n >= len(keys) {
		return keys
	}
	some := make([][]byte, 0, n)
	for i, key := range keys { // each is taken with the probability (still wanted)/(still there)
		if r.IntN(len(keys)-i) < n-len(some) {
			some = append(some, key)
		}
	}
	return some
}

// newSplit draws a split. It shuffles a label for each key, since in the order
// of the keys the numbers of each label can then be gathered without sorting.
func (p *place) newSplit(r *rand.Rand, labels []uint8) *split {
	counts := make([]int, 0, len(p.loads)+2)
	before := 0
	for _, l := range p.loads {
		counts = append(counts, l.n-before)
		before = l.n
	}
	counts = append(counts, p.queries, len(labels)-before-p.queries)
	at := 0
	lists := make([][]int32, len(counts))
	for label, count := range counts {
		lists[label] = make([]int32, 0, count)
		for range count {
			labels[at] = uint8(label)
			at++
		}
	}
	r.Shuffle(len(labels), func(i, j int) { labels[i], labels[j] = labels[j], labels[i] })
	unused := len(counts) - 1
	for key, label := range labels {
		if int(label) != unused {
			lists[label] = append(lists[label], int32(key))
		}
	}
	return &split{steps: lists[:len(p.loads)], queries: lists[len(p.loads)], seed: r.Uint64()}
}
