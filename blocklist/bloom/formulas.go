package bloom

import "math"

// The functions of this file take n and m as real numbers, also fractions. They are
// valid for n and m from 1 to [MaxPlan], p from [MinPlanFPR] to below 1, and k from 1
// to [MaxPlanHashes].

// FPR returns the textbook's false positive rate of a Bloom filter of m bits with k
// independent hash functions after n different keys, m and k at least 1:
//
//	(1 - e^(-k·n/m))^k
//
// Source: Bloom, "Space/Time Trade-offs in Hash Coding with Allowable Errors"
// (Communications of the ACM 13(7), 1970), in the usual approximation of
// (1 - 1/m)^(k·n) by e^(-k·n/m).
func FPR(m uint64, k int, n float64) float64 {
	// Expm1 keeps the digits that 1 - e^x loses for small x.
	return math.Pow(-math.Expm1(-float64(k)*n/float64(m)), float64(k))
}

// Capacity returns the number of keys n for which k functions are the best choice for
// m bits. Half of the bits are set then:
//
//	n = m · ln 2 / k
//
// That is 16.9 million for 2^28 bits and eleven functions. A filter takes more keys,
// but its false positive rate, about 2^-k at this number, rises fast.
func Capacity(m uint64, k int) float64 {
	return float64(m) * math.Ln2 / float64(k)
}

// OptimalBits returns the number of bits with which n entries have the rate p, if k
// were the best fraction:
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

// OptimalHashes returns the k, a fraction, with the lowest rate for n entries in m
// bits. It sets half of the bits (Broder and Mitzenmacher, section 2):
//
//	k = m/n · ln 2
func OptimalHashes(m, n float64) float64 { return m / n * math.Ln2 }

// BestHashes returns the whole k, from 1 to [MaxPlanHashes], with the lowest rate for
// n entries in m bits. The rate is lowest at [OptimalHashes], so k is one of the two
// whole numbers beside it.
func BestHashes(m, n float64) int {
	// Clipped before the conversion: an int may not hold m/n.
	ideal := min(max(OptimalHashes(m, n), 1), MaxPlanHashes)
	low, high := int(math.Floor(ideal)), int(math.Ceil(ideal))
	if logFPR(m, high, n) < logFPR(m, low, n) {
		return high
	}
	return low
}

// BitsFor returns the number of bits with which n entries and k functions have the
// rate p. It is [FPR] solved for m:
//
//	m = -k·n / ln(1 - p^(1/k))
func BitsFor(n, p float64, k int) float64 {
	return -float64(k) * n / logClear(p, k)
}

// EntriesFor returns the number of entries that m bits and k functions hold at the
// rate p. It is [FPR] solved for n:
//
//	n = -m · ln(1 - p^(1/k)) / k
func EntriesFor(m, p float64, k int) float64 {
	return -m * logClear(p, k) / float64(k)
}

// logClear returns ln(1 - p^(1/k)), the logarithm of the share of clear bits at the
// rate p. It computes the smaller of the two terms without the 1 that would swallow
// its digits.
func logClear(p float64, k int) float64 {
	log := math.Log(p) / float64(k)
	if log < -math.Ln2 {
		return math.Log1p(-math.Exp(log))
	}
	return math.Log(-math.Expm1(log))
}

// logFPR returns the natural logarithm of [FPR]. It is exact even if the rate is too
// small for a float64.
func logFPR(m float64, k int, n float64) float64 {
	return float64(k) * math.Log(-math.Expm1(-float64(k)*n/m))
}

// FPRBound returns an upper bound of the rate, for any m and n. [FPR] is an
// approximation that is a little too low for small filters; half an entry more and
// one bit less make it safe:
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
