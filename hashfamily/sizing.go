package hashfamily

import (
	"fmt"
	"math"
)

// maxBitsPerKey is the largest m/n of the sizing table.
const maxBitsPerKey = 20

// SeededSize returns the size of a seeded family for a false positive rate between
// 0 and 1: the smallest whole number of bits a key, from 1 to 20, with which some
// number of hashes from 1 to [MaxSeededK] reaches the rate by the formula (1 -
// e^(-k/bitsPerKey))^k, and the fewest such hashes. A rate below the lowest of the
// table is an error that names the lowest.
//
// So the bits come first; the rounding up of bits then saves hashes. ClickHouse
// sizes its filters by such a table, which also ends at 20 bits and 15 hashes.
func SeededSize(fpr float64) (bitsPerKey, k int, err error) {
	if !(fpr > 0 && fpr < 1) {
		return 0, 0, fmt.Errorf("false positive rate %v: use a number between 0 and 1", fpr)
	}
	least, leastK := 1.0, 0
	for bitsPerKey := 1; bitsPerKey <= maxBitsPerKey; bitsPerKey++ {
		for k := 1; k <= MaxSeededK; k++ {
			rate := seededRate(bitsPerKey, k)
			if rate <= fpr {
				return bitsPerKey, k, nil
			}
			if rate < least {
				least, leastK = rate, k
			}
		}
	}
	return 0, 0, fmt.Errorf("false positive rate %v: the lowest of the seeded family is %v, at %d bits a key and %d hashes: use that or more, or another family",
		fpr, least, maxBitsPerKey, leastK)
}

// seededRate returns (1 - e^(-k/bitsPerKey))^k.
func seededRate(bitsPerKey, k int) float64 {
	return math.Pow(-math.Expm1(-float64(k)/float64(bitsPerKey)), float64(k))
}
