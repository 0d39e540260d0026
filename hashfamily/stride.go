package hashfamily

import "math/bits"

// parts are the three numbers that triple hashing starts from.
type parts struct{ h1, h2, h3 uint64 }

// stride is triple hashing over m bits: the k indices of a key start at a, and each
// is a step further than the one before. The first step is b, and every step is c
// longer than the last. The double and the seeded families share it.
//
//	a = ⌊h1·m/2^64⌋, b = ⌊h2·m/2^64⌋, c = ⌊h3·m/2^64⌋
//	index i = (a + i·b + i·(i-1)/2·c) mod m
//
// Source: Dillinger and Manolios, "Bloom Filters in Probabilistic Verification"
// (FMCAD 2004), for triple hashing; Lemire, "Fast Random Integer Generation in an
// Interval" (ACM TOMACS 29(1), 2019), for the multiplication instead of a division.
//
// Double hashing is the same without c (see [Double] of "double:plain"). It has a
// floor of about 1/m below which no k lowers the rate: a step that shares a factor
// with m returns early, and a key that starts anywhere on a member's way, with the
// member's step forwards or backwards, shares nearly all of its indices. The
// quadratic and the cubic terms in use elsewhere (i² in ClickHouse, enhanced double
// hashing in RocksDB) lower that floor to about n/m². A third number lowers it to
// about n/m³, at the same cost: two additions an index. For 1,000 keys in 28,756
// bits and k = 20, where the formula says 1.0e-6, double hashing has 3.8e-5, i²
// 5.8e-6, the cubic term 2.1e-6 and triple hashing 1.4e-6 (TestStrideHasNoFloor).
type stride struct{ shape }

// newStride returns triple hashing for the family of that name, with at most mostM
// bits and mostK index functions. MostM must not exceed 2^63.
func newStride(name string, m uint64, k int, mostM uint64, mostK int) (stride, error) {
	shape, err := newShape(name, m, k, mostM, mostK)
	return stride{shape}, err
}

// scale returns ⌊h·m/2^64⌋, which is below m.
func (s *stride) scale(h uint64) uint64 {
	high, _ := bits.Mul64(h, s.m)
	return high
}

// start returns the first index, the first step, and what each further step is
// longer than the one before.
func (s *stride) start(h parts) (a, b, c uint64) { return s.scale(h.h1), s.scale(h.h2), s.scale(h.h3) }

// add returns (a+b) mod m, for a and b below m.
func (s *stride) add(a, b uint64) uint64 {
	if a += b; a >= s.m {
		a -= s.m
	}
	return a
}

// index returns index i of the way that starts so.
func (s *stride) index(i int, a, b, c uint64) uint64 {
	for range i {
		a, b = s.add(a, b), s.add(b, c)
	}
	return a
}

// appendIndices appends all k indices of the way that starts so.
func (s *stride) appendIndices(dst []uint64, a, b, c uint64) []uint64 {
	for range s.k {
		dst = append(dst, a)
		a, b = s.add(a, b), s.add(b, c)
	}
	return dst
}
