package plan

import (
	"errors"
	"fmt"
	"math"
	"sort"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
)

// familyPlan plans a filter over a hash family. The functions that act independently
// count in the formulas, and the plan has all of them. Bits are what the family takes.
func familyPlan(spec hashfamily.Spec, w bloom.PlanRequest) (bloom.Plan, error) {
	if spec.Textbook() {
		return bloom.Plan{}, fmt.Errorf("--family %s serves only to compare: it has a floor of about 1/m; use double", spec)
	}
	if spec.Seeded() && w.FPR > 0 && w.Hashes == 0 && (w.Entries == 0) != (w.Bits == 0) {
		p, err := seededPlan(w)
		if err != nil {
			return p, err
		}
		return reached(spec, p, w)
	}
	all := w.Hashes
	switch {
	case spec.K() != 0 && w.Hashes != 0 && w.Hashes != spec.K():
		return bloom.Plan{}, fmt.Errorf("--family %s has %d hashes: leave --hashes out", spec, spec.K())
	case spec.K() != 0 && w.Entries > 0 && w.Bits > 0 && w.FPR > 0:
		return bloom.Plan{}, fmt.Errorf("--family %s has a fixed number of hashes: leave one of --entries, --bits and --fpr out", spec)
	case spec.K() != 0:
		all = spec.K()
	case w.Hashes > spec.MaxK():
		return bloom.Plan{}, fmt.Errorf("--family %s has at most %d hashes", spec, spec.MaxK())
	}
	if all != 0 {
		w.Hashes = spec.Independent(all)
	}
	p, err := bloom.NewPlan(w)
	if err == nil && p.Hashes > spec.MaxK() { // m makes up for it
		w.Hashes = spec.MaxK()
		p, err = bloom.NewPlan(w)
	}
	if err != nil {
		return bloom.Plan{}, err
	}
	if all != 0 {
		p.Hashes = all
	}
	return fitted(spec, p, w)
}

// fitted rounds the bits of a plan up to what the family takes.
func fitted(spec hashfamily.Spec, p bloom.Plan, w bloom.PlanRequest) (bloom.Plan, error) {
	bits, err := spec.FitM(p.Bits)
	if err != nil {
		return bloom.Plan{}, err
	}
	if w.Bits != 0 && bits != w.Bits {
		return bloom.Plan{}, fmt.Errorf("--family %s takes powers of two: use --bits %d or %d", spec, bits/2, bits)
	}
	p.Bits = bits
	return reached(spec, p, w)
}

// reached adds bits to a plan, or takes entries away, until its rate is that asked for:
// small filters of some families have a higher rate than the formulas say.
func reached(spec hashfamily.Spec, p bloom.Plan, w bloom.PlanRequest) (bloom.Plan, error) {
	if spec.Excess(p.Bits, p.Hashes, p.Fill()) == 0 || w.FPR == 0 {
		return p, nil
	}
	by := func(d uint64) bloom.Plan { // the plan that is so much larger or emptier
		q := p
		if w.Bits == 0 {
			q.Bits += d
		} else {
			q.Entries -= d
		}
		return q
	}
	most := min(spec.MaxM(), bloom.MaxPlan) - p.Bits
	if w.Bits != 0 {
		most = p.Entries - 1
	}
	if w.Bits != 0 && w.Entries != 0 {
		most = 0
	}
	high := uint64(1) // is enough, unless it is too much
	for high <= most && rate(&spec, by(high)) > w.FPR {
		high *= 2
	}
	high = min(high, most)
	d := uint64(sort.Search(int(high), func(d int) bool { return rate(&spec, by(uint64(d))) <= w.FPR }))
	if q := by(d); rate(&spec, q) <= w.FPR {
		return q, nil
	}
	return p, fmt.Errorf("--family %s does not reach a rate of %v in %d bits: use more bits, fewer entries or a higher rate", spec, w.FPR, p.Bits)
}

// seededPlan plans by the table of the seeded family, which has whole bits for each
// entry.
func seededPlan(w bloom.PlanRequest) (bloom.Plan, error) {
	perEntry, k, err := hashfamily.SeededSize(w.FPR)
	if err != nil {
		return bloom.Plan{}, err
	}
	p := bloom.Plan{Entries: w.Entries, Bits: w.Entries * uint64(perEntry), Hashes: k}
	if w.Entries == 0 {
		p.Entries, p.Bits = w.Bits/uint64(perEntry), w.Bits
	}
	switch {
	case p.Bits > hashfamily.MaxSeededBits || w.Entries > hashfamily.MaxSeededBits:
		return p, fmt.Errorf("--family seeded: %d entries need %d bits each, and it has at most 2^32 in all: use fewer entries, a higher rate or another family", w.Entries, perEntry)
	case p.Entries == 0:
		return p, errors.New("--family seeded: the bits are too few for a single entry at this rate")
	}
	return p, nil
}

// rate returns the rate of a plan over the family: not a number if it cannot be
// predicted.
func rate(spec *hashfamily.Spec, p bloom.Plan) float64 {
	if spec == nil {
		return p.Rate()
	}
	if !spec.Predictable() {
		return math.NaN()
	}
	return min(bloom.Rate(p.Bits, spec.Independent(p.Hashes), float64(p.Entries))+spec.Excess(p.Bits, p.Hashes, p.Fill()), 1)
}
