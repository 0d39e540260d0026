package bloom

import (
	"fmt"
	"math"
	"sort"

	"spamgate/hashfamily"
)

// Size returns the number of bits m and of index functions k with which a [Filter]
// over the family has a false positive rate of fpr (between 0 and 1) at n keys, at
// least 1. It is an error if the family has none, or none of up to [MaxBits].
//
// If k is free it is the whole number that needs the least m; else m makes up for
// it. m is that of [BitsFor] for the number of functions that act independently
// ([hashfamily.Spec.Independent]), rounded up to what the family takes. For the
// seeded family it is that of [hashfamily.SeededSize]. What a family adds to the rate
// of small filters ([hashfamily.Spec.Excess]) takes more bits.
//
// The rate is that of [FPR]. The classic and the weighted families do not have it
// with keys that resemble each other: see [Filter.ExpectedFPR].
func Size(s hashfamily.Spec, n uint64, fpr float64) (m uint64, k int, err error) {
	if n < 1 || !(fpr > 0 && fpr < 1) {
		return 0, 0, fmt.Errorf("hash family %s: %d keys at a false positive rate of %v: use at least one key, and a rate between 0 and 1", s, n, fpr)
	}
	var bits float64
	if s.Seeded() {
		var perKey int
		if perKey, k, err = hashfamily.SeededSize(fpr); err != nil {
			return 0, 0, err
		}
		bits = float64(n) * float64(perKey)
	} else {
		if k = s.K(); k == 0 {
			k = min(hashesFor(fpr), s.MaxK())
		}
		bits = math.Ceil(BitsFor(float64(n), fpr, s.Independent(k)))
	}
	bits = sizeWithExcess(s, bits, k, float64(n), fpr)
	if most := min(s.MaxM(), MaxBits); bits > float64(most) {
		return 0, 0, fmt.Errorf("hash family %s: %d keys at a false positive rate of %v need %.4g bits, and a filter has at most %d: use fewer keys, a higher rate or another family",
			s, n, fpr, bits, most)
	}
	m, err = s.FitM(uint64(bits))
	return m, k, err
}

// sizeWithExcess returns the bits, or as many more as the family needs for the rate
// because of what it adds to the formula's.
func sizeWithExcess(s hashfamily.Spec, bits float64, k int, n, fpr float64) float64 {
	enough := func(more int) bool {
		m := uint64(bits) + uint64(more)
		fill := -math.Expm1(-float64(k) * n / float64(m))
		return math.Pow(fill, float64(k))+s.Excess(m, k, fill) <= fpr
	}
	if bits > MaxBits || s.Excess(uint64(bits), k, 1) == 0 {
		return bits
	}
	most := 1
	for bits+float64(most) < MaxBits && !enough(most) {
		most *= 2
	}
	return bits + float64(sort.Search(most, enough))
}
