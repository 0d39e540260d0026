package hashlab

import (
	"context"
	"math"
	"math/rand/v2"
)

// Sizes of the experiments.
const (
	// splits is the number of filters for each rate, splitsFull that of the full
	// run. A tally counts them in a byte.
	splits     = 20
	splitsFull = 30

	// queriesPerFilter is the greatest number of absent keys looked up in a filter.
	queriesPerFilter     = 40_000
	queriesPerFilterFull = 100_000

	// poolFactor limits the part of a corpus that is hashed for one size, in
	// multiples of the keys of one filter and its queries.
	poolFactor = 3

	// minBits is the smallest filter.
	minBits = 1 << 10

	// maxMembers limits the members of a filter, and so the memory of the splits:
	// enough for 2^24 bits and k = 7 at 5/4 of the capacity.
	maxMembers = 2_100_000
)

// wantedBits are the sizes of filters, if the corpus has enough keys; the last one
// is for the full run.
var wantedBits = []uint64{1 << 16, 1 << 20, 1 << 24}

// parts are the parts of the capacity at which filters are measured, rising.
var parts = []float64{0.25, 0.5, 0.75, 1, 1.25}

// shape holds the numbers of an experiment with filters of m bits and k functions.
type shape struct {
	m       uint64
	k       int
	loads   []load
	full    int // index of the load that is the whole capacity
	pool    int // number of keys that are hashed
	queries int // absent keys for each filter
	splits  int
}

// load is a number of members.
type load struct {
	part float64 // of the capacity
	n    int
}

// experiment compares subjects: it is keys of a corpus, and splits of them into
// members and queries that all subjects share.
type experiment struct {
	shape
	corpus   string
	seed     uint64
	keys     [][]byte // of the corpus, or random ones of them
	splits   []*split
	asked    []uint8   // by key: the number of splits of which it is a query
	messages *messages // nil if it has none
	passes   bool      // it measures the pass rates of each function
}

// split is one random choice of members and queries, as indices of the keys. Each
// slice rises, so that memory is read in order.
type split struct {
	steps   [][]int32 // the members that each load adds to those before
	queries []int32   // not members
	seed    uint64    // of the control of ideal hashes, which differs from filter to filter
}

// capacity returns how many keys with k functions set half of m bits: m·ln 2/k.
func capacity(m uint64, k int) int { return int(float64(m) * math.Ln2 / float64(k)) }

// minQueries returns how many absent keys n members need beside them.
func minQueries(n int) int { return max(250, n/8) }

// fits reports whether filters of m bits can be filled to the given part of
// their capacity from so many keys.
func fits(keys int, m uint64, k int, part float64) bool {
	n := int(part * float64(capacity(m, k)))
	return n <= maxMembers && n+minQueries(n) <= keys
}

// sizes returns the numbers of bits of the filters for a corpus of so many keys:
// the wanted ones for which it has the keys, or else the largest possible one.
func sizes(keys, k int, full bool) []uint64 {
	wanted := wantedBits
	if !full {
		wanted = wanted[:len(wanted)-1]
	}
	if all := Filter(wanted, func(m uint64) bool { return fits(keys, m, k, 1) }); len(all) > 0 {
		return all
	}
	m := uint64(minBits)
	for fits(keys, 2*m, k, 1) {
		m *= 2
	}
	return []uint64{m}
}

// newShape returns the shape for a corpus of so many keys.
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

// top returns the greatest number of members.
func (s *shape) top() int { return s.loads[len(s.loads)-1].n }

// cost returns roughly how many nanoseconds of one core a subject takes: to hash
// the keys, or to draw ideal indices for each filter, and to fill the filters and
// look up the queries.
func (s *shape) cost(ideal bool) float64 {
	hash := 30 * float64(s.pool*s.k)
	if ideal {
		hash = 60*float64(s.pool) + 4*float64(s.splits*(s.top()+s.queries)*s.k)
	}
	bit := 4.0
	if s.m > 1<<22 { // larger than the second-level cache
		bit = 8
	}
	return hash + float64(s.splits)*(bit*float64(s.top()*s.k)+30*float64(s.queries))
}

// newExperiment makes the splits of a corpus.
func newExperiment(ctx context.Context, c *Corpus, s shape, seed uint64) (*experiment, error) {
	p := &experiment{shape: s, corpus: c.Name, seed: seed, splits: make([]*split, s.splits)}
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

// stream returns random numbers for a purpose in this experiment.
func (p *experiment) stream(labels ...any) *rand.Rand {
	return stream(p.seed, append([]any{p.corpus, p.m, p.k}, labels...)...)
}

// sample returns n random keys in their order, or all if there are no more.
func sample(r *rand.Rand, keys [][]byte, n int) [][]byte {
	if n >= len(keys) {
		return keys
	}
	some := make([][]byte, 0, n)
	for i, key := range keys { // takes each with the probability (still wanted)/(still left)
		if r.IntN(len(keys)-i) < n-len(some) {
			some = append(some, key)
		}
	}
	return some
}

// newSplit draws a split. It shuffles a label for each key: collecting the indices
// of each label in the order of the keys then needs no sorting.
func (p *experiment) newSplit(r *rand.Rand, labels []uint8) *split {
	counts := make([]int, 0, len(p.loads)+2)
	before := 0
	for _, l := range p.loads {
		counts = append(counts, l.n-before)
		before = l.n
	}
	counts = append(counts, p.queries, len(labels)-before-p.queries)
	pos := 0
	lists := make([][]int32, len(counts))
	for label, count := range counts {
		lists[label] = make([]int32, 0, count)
		for range count {
			labels[pos] = uint8(label)
			pos++
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
