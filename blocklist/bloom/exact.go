package bloom

import "math"

// maxExactDraws is the largest k·n whose rate is computed exactly. That takes (k·n)²/2
// steps, some microseconds.
const maxExactDraws = 128

// Exact reports whether [Rate] is exact for n keys with k functions.
func Exact(k int, n float64) bool { return n == math.Trunc(n) && float64(k)*n <= maxExactDraws }

// Rate returns a false positive rate that a filter of m bits with k independent
// functions after n different keys does not exceed, m and k at least 1. It is exact for
// few keys (see [Exact]), for which [FPR] is too low, and [FPRBound] for many, where both
// are the same in all digits that matter.
//
// The exact rate is the sum of (x/m)^k over the numbers x of bits that may be set,
// each with its probability. They are computed draw by draw: a draw sets another bit
// with the probability (m-x)/m.
//
// Source: Bose, Guo, Kranakis, Maheshwari, Morin, Morrison, Smid and Tang, "On the
// False-Positive Rate of Bloom Filters" (Information Processing Letters 108(4), 2008);
// Christensen, Roginsky and Jimeno, "A New Analysis of the False Positive Rate of a
// Bloom Filter" (Information Processing Letters 110(21), 2010), who correct it.
func Rate(m uint64, k int, n float64) float64 {
	if !Exact(k, n) {
		return FPRBound(m, k, n)
	}
	bits, draws := float64(m), k*int(n)
	most := draws
	if m < uint64(draws) {
		most = int(m)
	}
	set := make([]float64, most+1) // set[x] is the probability that x bits are set
	set[0] = 1
	for t := range draws {
		for x := min(t+1, most); x > 0; x-- {
			set[x] = set[x]*float64(x)/bits + set[x-1]*((bits-float64(x-1))/bits)
		}
		set[0] = 0
	}
	rate := 0.0
	for x, p := range set {
		rate += p * math.Pow(float64(x)/bits, float64(k))
	}
	return min(rate, 1)
}
