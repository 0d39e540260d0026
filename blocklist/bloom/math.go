package bloom

import "math"

// FPR returns the textbook's false positive rate of a Bloom filter of m bits with k
// independent hash functions after n different keys, m and k at least 1:
//
//	(1 - e^(-k·n/m))^k
//
// Source: Bloom, "Space/Time Trade-offs in Hash Coding with Allowable Errors"
// (Communications of the ACM 13(7), 1970), in the usual approximation of
// (1 - 1/m)^(k·n) by e^(-k·n/m).
func FPR(m uint64, k int, n float64) float64 {
	// Expm1 keeps the digits that 1 - e^x loses while x is small.
	return math.Pow(-math.Expm1(-float64(k)*n/float64(m)), float64(k))
}

// Capacity returns the number of keys n for which k functions are the best choice in
// m bits, so that half of the bits are set:
//
//	n = m · ln 2 / k
//
// That is 16.9 million for 2^28 bits and eleven functions. A filter takes more,
// but its false positive rate, about 2^-k here, climbs fast.
func Capacity(m uint64, k int) float64 {
	return float64(m) * math.Ln2 / float64(k)
}
