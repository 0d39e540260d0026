package bloom

import (
	"math"

	"spamgate/hashfamily"
)

// ExpectedFPR returns the false positive rate to expect: [Filter.FPR], corrected by
// what is known of the family.
//
// For a classic family the number of hashes that act independently (see
// [hashfamily.Classic.Independent]) replaces k. The package comment compares both
// with measurements.
//
// For the double and the seeded families it counts the keys whose k indices are not
// k independent draws. They set a floor, which matters for small filters with a low
// rate:
//
//   - A step that shares a factor with m returns to its start after d = m/gcd(b, m)
//     indices, and a key with such a step needs only d bits. For each divisor d of
//     m below k there are φ(d) such steps in m; one of them is always the step 0,
//     d = 1. If m is a power of two steps are odd, and none returns early.
//   - A key with a member's step, forwards or backwards, that starts j steps away
//     from it shares all but j of its indices. With the fill ratio f that is
//     2n·(1 + 2f + 2f² + …) of the m² pairs of a start and a step, or of m²/2 if
//     steps are odd.
//
// It comes close (TestExpectedFPROfDouble). For other families it is FPR.
func (f *Filter) ExpectedFPR() float64 {
	return f.expectedFPR(f.FillRatio(), f.EstimatedEntries())
}

// Expect returns FillRatio and ExpectedFPR for a filter with n different keys.
func (f *Filter) Expect(n float64) (fill, fpr float64) {
	fill = -math.Expm1(-f.independent() * n / float64(f.m))
	return fill, f.expectedFPR(fill, n)
}

// independent returns the number of hashes that act independently, as far as that
// is known.
func (f *Filter) independent() float64 {
	if f.classic != nil {
		return float64(f.classic.Independent())
	}
	return float64(f.k)
}

func (f *Filter) expectedFPR(fill, n float64) float64 {
	fpr := math.Pow(fill, f.independent())
	switch f.family.(type) {
	case *hashfamily.Double, *hashfamily.Seeded:
		return min(fpr+f.strideFPR(fill, n), fill)
	}
	return fpr
}

// strideFPR returns what double hashing adds to the rate.
func (f *Filter) strideFPR(fill, n float64) float64 {
	m := float64(f.m)
	if fill == 0 || fill == 1 {
		return 0
	}
	pairs := m * m
	rate := 0.0
	if f.m&(f.m-1) == 0 {
		pairs /= 2
	} else {
		for d := uint64(1); d < uint64(f.k); d++ {
			if f.m%d == 0 {
				rate += float64(coprimes(d)) / m * math.Pow(fill, float64(d))
			}
		}
	}
	near := 1 + 2*fill*(1-math.Pow(fill, float64(f.k-1)))/(1-fill)
	return rate + 2*n*near/pairs
}

// coprimes returns φ(d), the number of 1 … d that have no factor in common with d.
func coprimes(d uint64) int {
	n := 0
	for i := range d {
		a, b := i+1, d
		for b != 0 {
			a, b = b, a%b
		}
		if a == 1 {
			n++
		}
	}
	return n
}
