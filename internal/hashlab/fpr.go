package hashlab

import (
	"context"
	"math"
	"slices"

	"spamgate/hashfamily"
)

// measurement counts the results of one subject in an experiment.
type measurement struct {
	family   hashfamily.Family // of one of the filters: they differ in the seed at most
	byLoad   []*tally          // per key, at each load
	ones     []uint64          // set bits at each load, over all filters
	messages *tally            // nil if not measured
	passes   []*tally          // of each index function; nil if not measured
	maybe    []int32           // buffer of filter
	filled   []bitmap          // buffer of filter: the filter at each load
}

func (p *experiment) newMeasurement(f hashfamily.Family) *measurement {
	x := &measurement{family: f, ones: make([]uint64, len(p.loads))}
	for range p.loads {
		x.byLoad = append(x.byLoad, newTally(len(p.splits), len(p.keys)))
		x.filled = append(x.filled, newBitmap(p.m))
	}
	if p.messages != nil {
		x.messages = newTally(len(p.splits), len(p.messages.keys))
	}
	if p.passes {
		for range p.k {
			x.passes = append(x.passes, newTally(len(p.splits), len(p.keys)))
		}
	}
	return x
}

// add adds the counts of another worker.
func (x *measurement) add(other *measurement) {
	for i := range x.byLoad {
		x.byLoad[i].add(other.byLoad[i])
		x.ones[i] += other.ones[i]
	}
	if x.messages != nil {
		x.messages.add(other.messages)
	}
	for i := range x.passes {
		x.passes[i].add(other.passes[i])
	}
}

// allKeys returns the keys, and after them the candidate keys of messages.
func (p *experiment) allKeys() [][]byte {
	if p.messages == nil {
		return p.keys
	}
	return slices.Concat(p.keys, p.messages.candidates)
}

// draw sets the rows that one split needs, by functions of its own.
func (p *experiment) draw(t *table, f *ideal, digests []digest, s *split) {
	for _, keys := range append(s.steps[:len(s.steps):len(s.steps)], s.queries) {
		for _, key := range keys {
			f.drawRow(t.row(key), digests[key])
		}
	}
	for candidate := len(p.keys); candidate < len(digests); candidate++ {
		f.drawRow(t.row(int32(candidate)), digests[candidate])
	}
}

// measure fills a filter for each split and looks up the queries. If ctx ends
// early, it returns its error.
func (p *experiment) measure(ctx context.Context, s subject) (*measurement, error) {
	f, err := s.make(p.seed, p.m)
	if err != nil {
		return nil, err
	}
	var shared *table
	var digests []digest // of the control, which has other functions in each filter
	control, isIdeal := f.(*ideal)
	if isIdeal {
		digests, err = control.digests(ctx, p.allKeys())
	} else {
		shared, err = tabulate(ctx, f, p.allKeys())
	}
	if err != nil {
		return nil, err
	}
	workers := make(chan *measurement, len(p.splits))
	err = parallel(ctx, len(p.splits), func() func(int) {
		own, t := p.newMeasurement(f), shared
		if isIdeal {
			t = newTable(len(digests), p.k)
		}
		workers <- own
		return func(i int) {
			if isIdeal {
				p.draw(t, control.withSeed(p.splits[i].seed), digests, p.splits[i])
			}
			own.filter(p, i, t)
		}
	})
	close(workers)
	if err != nil {
		return nil, err
	}
	x := <-workers
	for other := range workers {
		x.add(other)
	}
	return x, nil
}

// filter fills the filter of the i-th split, and looks up the queries at each load.
// It copies each load's filter to ask the fullest one first: what that does not
// contain is in none of the others, so that most queries need one lookup.
func (x *measurement) filter(p *experiment, i int, all *table) {
	s := p.splits[i]
	for l, step := range s.steps {
		if l == 0 {
			clear(x.filled[0])
		} else {
			copy(x.filled[l], x.filled[l-1])
		}
		for _, key := range step {
			x.filled[l].add(all.row(key))
		}
		x.ones[l] += uint64(x.filled[l].ones())
	}
	fullest := x.filled[len(x.filled)-1]
	x.maybe = x.maybe[:0]
	for _, key := range s.queries {
		if fullest.has(all.row(key)) {
			x.maybe = append(x.maybe, key)
		}
	}
	for l, bits := range x.filled {
		t := x.byLoad[l]
		for _, key := range x.maybe {
			if bits.has(all.row(key)) {
				t.hit(i, key)
			}
		}
		t.trials[i] = uint64(len(s.queries))
	}
	x.pass(s, i, all, x.filled[p.full])
	if p.messages != nil {
		p.messages.ask(x.messages, i, all, len(p.keys), x.filled[p.full])
	}
}

// rows returns the rates at each load.
func (x *measurement) rows(p *experiment, s Subject) []FPRRow {
	var rows []FPRRow
	for l, load := range p.loads {
		rows = append(rows, fprRow(FPRRow{Corpus: p.corpus, Subject: s, M: p.m, K: p.k, N: load.n, Load: load.part},
			x.byLoad[l], p.asked, x.ones[l]))
	}
	return rows
}

// fprRow completes a row with the counts: ones is the set bits of all filters
// together.
func fprRow(row FPRRow, t *tally, asked []uint8, ones uint64) FPRRow {
	m, k, n := float64(row.M), float64(row.K), float64(row.N)
	row.Filters = len(t.hits)
	row.Hits, row.Trials = t.total()
	row.Rate = t.rate(asked)
	row.Fill = float64(ones) / m / float64(row.Filters)
	row.ExpectedFill = -math.Expm1(-k * n / m)
	row.Formula = math.Pow(row.ExpectedFill, k)
	row.ByFill = math.Pow(row.Fill, k)
	row.EffectiveK = effectiveK(row.Rate, row.Fill)
	return row
}

// effectiveK returns the k at which fill^k is the rate. A rate of 0 has no k: its
// upper bound gives the lower limit, and the rest is unknown. For an empty or full
// filter only k ≥ 0 is known.
func effectiveK(rate Interval, fill float64) Interval {
	k := Interval{math.Inf(1), 0, math.Inf(1)}
	if fill <= 0 || fill >= 1 {
		return k
	}
	hashes := func(rate float64) float64 { return max(0, math.Log(rate)/math.Log(fill)) } // not -0 for a rate of 1
	k.Low = hashes(rate.High)
	if rate.Value > 0 {
		k.Value, k.High = hashes(rate.Value), hashes(rate.Low)
	}
	return k
}
