package hashlab

import (
	"context"
	"math"

	"spamgate/hashfamily"
)

// measured is what the filters of one subject in one place showed.
type measured struct {
	family   hashfamily.Family // of one of the filters: they differ in a seed at most
	byLoad   []*tally          // per key, at each load
	ones     []uint64          // set bits at each load, over all filters
	messages *tally            // nil where none are asked
	passes   []*tally          // of each index function; nil where not measured
	maybe    []int32           // room for filter
	filled   []bitmap          // likewise: the filter at each load
}

func (p *place) newMeasured(f hashfamily.Family) *measured {
	x := &measured{family: f, ones: make([]uint64, len(p.loads))}
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

// add adds what another worker measured.
func (x *measured) add(other *measured) {
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

// hashed is the indices that a filter is made of and asked for.
type hashed struct {
	keys, candidates *table // candidates of messages, nil where none are asked
}

// hash hashes all that the place's splits need.
func (p *place) hash(ctx context.Context, f hashfamily.Family) (h hashed, err error) {
	if h.keys, err = tabulate(ctx, f, p.keys); err == nil && p.messages != nil {
		h.candidates, err = tabulate(ctx, f, p.messages.candidates)
	}
	return h, err
}

// digested is what the ideal functions of all splits are drawn from.
type digested struct{ keys, candidates []digest }

// digest digests all that the place's splits need.
func (p *place) digest(ctx context.Context, f *ideal) (d digested, err error) {
	if d.keys, err = f.digests(ctx, p.keys); err == nil && p.messages != nil {
		d.candidates, err = f.digests(ctx, p.messages.candidates)
	}
	return d, err
}

// draw fills h with what one split needs, by the functions that it alone has.
func (p *place) draw(h *hashed, f *ideal, d digested, s *split) {
	if h.keys == nil {
		h.keys = newTable(len(p.keys), p.k)
	}
	for _, step := range s.steps {
		for _, key := range step {
			f.drawRow(h.keys.row(key), d.keys[key])
		}
	}
	for _, key := range s.queries {
		f.drawRow(h.keys.row(key), d.keys[key])
	}
	if p.messages == nil {
		return
	}
	if h.candidates == nil {
		h.candidates = newTable(len(p.messages.candidates), p.k)
	}
	for i, digest := range d.candidates {
		f.drawRow(h.candidates.row(int32(i)), digest)
	}
}

// measure makes a filter of each split and asks it. When ctx ends before all is
// done, its error is returned.
func (p *place) measure(ctx context.Context, s subject) (*measured, error) {
	f, err := s.make(p.seed, p.m)
	if err != nil {
		return nil, err
	}
	var shared hashed
	var digests digested
	control, fresh := f.(*ideal)
	if fresh {
		digests, err = p.digest(ctx, control)
	} else {
		shared, err = p.hash(ctx, f)
	}
	if err != nil {
		return nil, err
	}
	workers := make(chan *measured, len(p.splits))
	err = parallel(ctx, len(p.splits), func() func(int) {
		own, h := p.newMeasured(f), shared
		workers <- own
		return func(i int) {
			if fresh {
				p.draw(&h, control.again(p.splits[i].seed), digests, p.splits[i])
			}
			own.filter(p, i, h)
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

// filter makes the filter of the i-th split, and asks for its queries at each
// load. A copy of each load's filter is kept, so that the fullest one can be
// asked first: what it does not contain is in none of the others, and most
// queries need to be asked for only once.
func (x *measured) filter(p *place, i int, h hashed) {
	s := p.splits[i]
	for l, step := range s.steps {
		if l == 0 {
			clear(x.filled[0])
		} else {
			copy(x.filled[l], x.filled[l-1])
		}
		for _, key := range step {
			x.filled[l].add(h.keys.row(key))
		}
		x.ones[l] += uint64(x.filled[l].ones())
	}
	fullest := x.filled[len(x.filled)-1]
	x.maybe = x.maybe[:0]
	for _, key := range s.queries {
		if fullest.has(h.keys.row(key)) {
			x.maybe = append(x.maybe, key)
		}
	}
	for l, bits := range x.filled {
		t := x.byLoad[l]
		for _, key := range x.maybe {
			if bits.has(h.keys.row(key)) {
				t.hit(i, key)
			}
		}
		t.trials[i] = uint64(len(s.queries))
	}
	x.pass(s, i, h.keys, x.filled[p.full])
	if p.messages != nil {
		p.messages.ask(x.messages, i, h.candidates, x.filled[p.full])
	}
}

// rows are the rates at each load.
func (x *measured) rows(p *place, s Subject) []FPRRow {
	var rows []FPRRow
	for l, at := range p.loads {
		rows = append(rows, fprRow(FPRRow{Corpus: p.corpus, Subject: s, M: p.m, K: p.k, N: at.n, Load: at.part},
			x.byLoad[l], p.asked, x.ones[l]))
	}
	return rows
}

// fprRow completes a row with what was counted: ones is the set bits of all
// filters together.
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

// effectiveK is the k at which fill^k is the rate. A rate of 0 has no k: its
// upper bound gives the least one that goes with it, and the rest is unknown. Of
// a filter that is empty or full all is, but that k is at least 0.
func effectiveK(rate Interval, fill float64) Interval {
	k := Interval{math.Inf(1), 0, math.Inf(1)}
	if fill <= 0 || fill >= 1 {
		return k
	}
	of := func(rate float64) float64 { return max(0, math.Log(rate)/math.Log(fill)) } // not -0, where the rate is 1
	k.Low = of(rate.High)
	if rate.Value > 0 {
		k.Value, k.High = of(rate.Value), of(rate.Low)
	}
	return k
}
