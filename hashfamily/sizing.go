package hashfamily

import (
	"fmt"
	"math"
	"sync"
)

// maxBitsPerKey is the largest m/n of the sizing table.
const maxBitsPerKey = 20

// sizing holds the rate of false positives for m/n bits a key (1 to
// maxBitsPerKey) and k hashes (1 to MaxSeededK): (1 - e^(-k/(m/n)))^k. Row and
// column 0 are not used.
var sizing = sync.OnceValue(func() (rates [maxBitsPerKey + 1][MaxSeededK + 1]float64) {
	for bitsPerKey := 1; bitsPerKey <= maxBitsPerKey; bitsPerKey++ {
		for k := 1; k <= MaxSeededK; k++ {
			fill := -math.Expm1(-float64(k) / float64(bitsPerKey))
			rates[bitsPerKey][k] = math.Pow(fill, float64(k))
		}
	}
	return rates
})

// SeededSize sizes a seeded family for a wanted rate of false positives, between
// 0 and 1: the least whole number of bits a key, from 1 to 20, with which some
// number of hashes from 1 to [MaxSeededK] reaches it by the formula
// (1 - e^(-k/bitsPerKey))^k, and then the fewest hashes that still reach it. A
// rate below the least of the table is an error that names the least.
//
// So the bits come first, and hashes are spared where the whole number of bits
// leaves room. ClickHouse sizes its filters by such a table, which ends at 20 bits
// and 15 hashes, too.
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
	return 0, 0, fmt.Errorf("false positive rate %v: the least of the seeded family is %v, at %d bits a key and %d hashes: use that or more, or another family",
		fpr, least, maxBitsPerKey, leastK)
}
