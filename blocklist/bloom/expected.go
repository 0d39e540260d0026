package bloom

import (
	"math"

	"spamgate/hashfamily"
)

// ExpectedFPR returns the rate to reckon with: [Filter.FPR], and what is known of the
// family on top.
//
// For a classic family the number of hashes that act independently (see
// [hashfamily.Classic.Independent]) takes the place of k. The package comment has
// both beside what was measured.
//
// For the double and the seeded families it counts the keys whose k indices are
// not k draws. They set a floor, which small filters for a low rate feel:
//
//   - A step that shares a factor with m comes back after d = m/gcd(b, m) indices,
//     and a key with such a step asks for no more than d bits. For each divisor d
//     of m below k there are φ(d) such steps in m; the step 0, d = 1, is always one
//     of them. Where m is a power of two steps are odd, and none comes back.
//   - A key with a member's step, forwards or backwards, that starts j steps from
//     it, has all but j of its indices in common with it. With the fill ratio f,
//     that is 2n·(1 + 2f + 2f² + …) of the m² pairs of a start and a step, or of
//     m²/2 where steps are odd.
//
// It comes close (TestExpectedFPROfDouble). For other families it is FPR.
func (f *Filter) ExpectedFPR() float64 {
	return f.expectedFPR(f.FillRatio(), f.EstimatedEntries())
}

// Expect returns what FillRatio and ExpectedFPR are to be once n different keys are in
// the filter.
func (f *Filter) Expect(n float64) (fill, fpr float64) {
	fill = -math.Expm1(-f.independent() * n / float64(f.m))
	return fill, f.expectedFPR(fill, n)
}

// independent returns how many hashes act independently, as far as that is known.
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

// coprimes returns φ(d), how many of 1 … d have no factor in common with d.
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
