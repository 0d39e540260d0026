package hashfamily

import (
	"fmt"
	"math"
	"sync"
)

// maxBitsPerKey is the largest m/n of the sizing table.
const maxBitsPerKey = 20

// sizing holds the false positive rate for m/n bits a key (1 to maxBitsPerKey) and k
// hashes (1 to MaxSeededK): (1 - e^(-k/(m/n)))^k. Row and column 0 are unused.
var sizing = sync.OnceValue(func() (rates [maxBitsPerKey + 1][MaxSeededK + 1]float64) {
	for bitsPerKey := 1; bitsPerKey <= maxBitsPerKey; bitsPerKey++ {
		for k := 1; k <= MaxSeededK; k++ {
			fill := -math.Expm1(-float64(k) / float64(bitsPerKey))
			rates[bitsPerKey][k] = math.Pow(fill, float64(k))
		}
	}
	return rates
})

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
	rates := sizing()
	least, leastK := 1.0, 0
	for bitsPerKey := 1; bitsPerKey <= maxBitsPerKey; bitsPerKey++ {
		for k := 1; k <= MaxSeededK; k++ {
			rate := rates[bitsPerKey][k]
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
