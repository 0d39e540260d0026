package bloom

import (
	"math"

	"spamgate/hashfamily"
)

// ExpectedFPR returns the false positive rate to expect, from the fill ratio: fill^k.
//
// For a classic or a weighted family it is at least that of n different keys:
// (1 - e^(-k·n/m))^k, with the number of hashes that act independently at best (see
// [hashfamily.Classic.Independent]) in place of k. Keys that resemble each other set
// fewer bits than n keys should, and their fill ratio alone would promise a rate that
// they do not have. Even so, names that resemble the entries pass more often than it
// says; only measuring tells how often.
//
// For the double and the seeded families it is what triple hashing adds more
// ([hashfamily.Spec.Excess]), which matters in filters that are small or nearly empty.
//
// For one or two classic hashes nothing can be predicted: the result is not a number
// (NaN).
func (f *Filter) ExpectedFPR(n float64) float64 {
	if !f.predictable() {
		return math.NaN()
	}
	byFill := math.Pow(f.FillRatio(), f.independent())
	switch f.family.(type) {
	case *hashfamily.Classic, *hashfamily.Weighted:
		_, byEntries := f.Expect(n)
		return max(byFill, byEntries)
	}
	return min(byFill+f.excess(f.FillRatio()), 1)
}

// Expect returns FillRatio and ExpectedFPR for a filter with n different keys.
func (f *Filter) Expect(n float64) (fill, fpr float64) {
	fill = -math.Expm1(-f.independent() * n / float64(f.m))
	if !f.predictable() {
		return fill, math.NaN()
	}
	return fill, min(math.Pow(fill, f.independent())+f.excess(fill), 1)
}

// excess returns what the family adds to the rate of the fill ratio.
func (f *Filter) excess(fill float64) float64 {
	if s, ok := f.family.(interface{ Excess(fill float64) float64 }); ok {
		return s.Excess(fill)
	}
	return 0
}

// predictable reports whether the rate can be computed.
func (f *Filter) predictable() bool { return f.classic == nil || f.classic.Predictable() }

// independent returns the number of hashes that act independently, as far as that
// is known.
func (f *Filter) independent() float64 {
	if f.classic != nil {
		return float64(f.classic.Independent())
	}
	return float64(f.k)
}
