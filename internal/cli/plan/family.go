package plan

import (
	"errors"
	"fmt"
	"math"

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
		return seededPlan(w)
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
	return p, nil
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
	return bloom.Rate(p.Bits, spec.Independent(p.Hashes), float64(p.Entries))
}
