package blocklist

import (
	"math"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
)

// FilterCost is what a filter takes, and how often it is wrong, by the formulas.
type FilterCost struct {
	Bytes  uint64  // of memory
	FPR    float64 // for one key that no list has; NaN if it cannot be predicted
	Shards int     // bitmaps; 0 for fuse filters
}

// Cost returns what the filter costs for lists of these numbers of keys. The error says
// what is wrong with f, or that there is no such filter for so many keys.
func (f Filter) Cost(lists ...uint64) (FilterCost, error) {
	l, err := f.layout()
	if err != nil {
		return FilterCost{}, err
	}
	if l.Kind == KindFuse {
		return l.fuseCost(lists), nil
	}
	keys := uint64(0)
	for _, n := range lists {
		keys += n
	}
	capacity := l.capacity(keys)
	family, err := l.family(capacity, make([]byte, hashfamily.KeySize)) // no key makes a difference
	if err != nil {
		return FilterCost{}, err
	}
	m, shards := family.M(), l.shards(capacity)
	c := FilterCost{Bytes: (m + 7) / 8 * shards, Shards: int(shards)}
	if l.Kind == KindCounting {
		c.Bytes += m * uint64(l.CounterBits) / 8
	}
	c.FPR = math.NaN()
	if l.spec.Predictable() {
		c.FPR = bloom.FPR(m, l.spec.Independent(family.K()), float64(keys)/float64(shards))
	}
	return c, nil
}

// fuseCost returns what fuse filters cost. An absent key is looked up in each of them.
func (l layout) fuseCost(lists []uint64) (c FilterCost) {
	width := bloom.FuseWidth(l.FPR)
	for _, n := range lists {
		if n > 0 {
			c.Bytes += bloom.FuseBytes(n, width)
			c.FPR += (1 - c.FPR) * bloom.FuseFPR(width)
		}
	}
	return c
}
