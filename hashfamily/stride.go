package hashfamily

import (
	"math"
	"math/bits"
)

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
// hashing in RocksDB) lower that floor, and a third number lowers it further, at the
// same cost: two additions an index. For 1,000 keys in 28,756 bits and k = 20, where
// the formula says 1.0e-6, double hashing has 3.8e-5, i² 5.8e-6, the cubic term 2.1e-6
// and triple hashing 1.1e-6 to 1.4e-6 (TestStrideHasNoFloor). What is left matters in
// small filters only; excess says how much it is.
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

// Excess returns [Spec.Excess] of a filter over the family with such a fill ratio.
func (s *stride) Excess(fill float64) float64 { return excess(s.m, s.k, fill) }

// excess returns an estimate, which measured filters do not exceed, of how much the rate
// of triple hashing is above fill^k. Two sorts of ways visit fewer than k bits:
//
//   - If 2b + (s-1)·c is 0 modulo m for a sum s of two of the numbers i, the way turns
//     round and visits bits again: half of them if it turns in the middle.
//   - If b and c are multiples of m/d for a small divisor d of m, it returns soon.
//
// So small filters have a floor:
// 10 keys in 303 bits have a rate of 4.5e-5 with k = 20, where the formula says 1e-6,
// and 1,000 keys in 57,600 bits one of 7e-9 with k = 40, where it says 1e-12
// (TestExcess). From about 64/sqrt(p) bits on it is below a tenth of a rate p.
func excess(m uint64, k int, fill float64) float64 {
	if k < 3 {
		return 0 // all ways have independent bits
	}
	bits := float64(m)
	return 4*math.Pow(fill, float64(k)/2)/bits + fill*(1+128*fill)/(bits*bits)
}
