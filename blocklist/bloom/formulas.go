package bloom

import "math"

// The functions of this file take n and m as real numbers, so that they can be
// had between whole ones, and promise sense for n and m from 1 to [MaxPlan], p
// from [MinPlanFPR] to below 1, k from 1 to [MaxPlanHashes].

// OptimalBits returns the number of bits with which n entries have the rate p, if k
// could be the fraction that suits best:
//
//	m = -n · ln p / (ln 2)²
//
// That is 1.44·log2(1/p) bits an entry. A whole k needs a little more: see
// [BitsFor].
//
// Source: Broder and Mitzenmacher, "Network Applications of Bloom Filters: A
// Survey" (Internet Mathematics 1(4), 2004), section 2.
func OptimalBits(n, p float64) float64 {
	return -n * math.Log(p) / (math.Ln2 * math.Ln2)
}

// OptimalHashes returns the k of the lowest rate for n entries in m bits, a fraction,
// with which half of the bits get set (Broder and Mitzenmacher, section 2):
//
//	k = m/n · ln 2
func OptimalHashes(m, n float64) float64 { return m / n * math.Ln2 }

// BestHashes returns the whole k of the lowest rate for n entries in m bits, from 1 to
// [MaxPlanHashes]. The rate falls to its least at [OptimalHashes] and rises after
// it, so that it is one of the two whole numbers beside.
func BestHashes(m, n float64) int {
	// Clipped as a real number: an int may not hold m/n.
	ideal := min(max(OptimalHashes(m, n), 1), MaxPlanHashes)
	low, high := int(math.Floor(ideal)), int(math.Ceil(ideal))
	if logFPR(m, high, n) < logFPR(m, low, n) {
		return high
	}
	return low
}

// BitsFor returns the number of bits with which n entries and k functions have the
// rate p, which is [FPR] solved for m:
//
//	m = -k·n / ln(1 - p^(1/k))
func BitsFor(n, p float64, k int) float64 {
	return -float64(k) * n / logClear(p, k)
}

// EntriesFor returns the number of entries that m bits and k functions hold at the
// rate p, which is [FPR] solved for n:
//
//	n = -m · ln(1 - p^(1/k)) / k
func EntriesFor(m, p float64, k int) float64 {
	return -m * logClear(p, k) / float64(k)
}

// logClear returns ln(1 - p^(1/k)): the logarithm of the part of the bits that is
// clear when the rate is p. Whichever of the two terms is small is computed
// without the 1 that would swallow its digits.
func logClear(p float64, k int) float64 {
	log := math.Log(p) / float64(k)
	if log < -math.Ln2 {
		return math.Log1p(-math.Exp(log))
	}
	return math.Log(-math.Expm1(log))
}

// logFPR returns the natural logarithm of [FPR], which stays a number when the rate
// is too small for one.
func logFPR(m float64, k int, n float64) float64 {
	return float64(k) * math.Log(-math.Expm1(-float64(k)*n/m))
}

// FPRBound returns a rate that the filter does not exceed, for any m and n. [FPR] is an
// approximation, and for small filters a little too low; half an entry more and a
// bit less make it safe:
//
//	(1 - e^(-k·(n+½)/(m-1)))^k
//
// It is 1 for m = 1.
//
// Source: Goel and Gupta, "Small subset queries and Bloom filters using ternary
// associative memories, with applications" (ACM SIGMETRICS 2010).
func FPRBound(m uint64, k int, n float64) float64 {
	if m <= 1 {
		return 1
	}
	return FPR(m-1, k, n+0.5)
}
