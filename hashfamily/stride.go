package hashfamily

// halves are the two hashes of double hashing.
type halves struct{ h1, h2 uint64 }

// stride is double hashing over m bits: the k indices of a key start at a and
// continue in steps of b. The double and the seeded families share it.
//
//	a = h1 mod m, b = h2 mod m; if m is a power of two, b's lowest bit is set
//	index i = (a + i·b) mod m
//
// Source: Adam Kirsch and Michael Mitzenmacher, "Less Hashing, Same Performance:
// Building a Better Bloom Filter" (ESA 2006), who show that two hashes instead of k
// leave the false positive rate the same as m grows.
//
// An odd step visits all of 2^j bits before it returns, so the indices of a key are
// k different ones. For other m a step may share a factor with m and return early,
// or be 0 (one key in m): such keys have fewer than k different indices. In small
// filters the pair (a, b) distinguishes too few keys: a key with a member's start
// and step, or with the member's last index and the step backwards, is a false
// positive for any k. That happens at a rate of about 4n/m² for n members and m =
// 2^j.
type stride struct {
	shape
	mask uint64 // m-1 if m is a power of two, else 0
	odd  uint64 // 1 if m is a power of two, else 0
}

// newStride returns double hashing for the family of that name, with at most mostM
// bits and mostK index functions. MostK·mostM must not exceed 2^64.
func newStride(name string, m uint64, k int, mostM uint64, mostK int) (stride, error) {
	shape, err := newShape(name, m, k, mostM, mostK)
	s := stride{shape: shape}
	if m&(m-1) == 0 {
		s.mask, s.odd = m-1, 1
	}
	return s, err
}

// reduce returns h mod m.
func (s *stride) reduce(h uint64) uint64 {
	if s.odd != 0 {
		return h & s.mask
	}
	return h % s.m
}

// start returns the first index and the step to each next one.
func (s *stride) start(h halves) (a, b uint64) { return s.reduce(h.h1), s.reduce(h.h2 | s.odd) }

// index returns index i.
func (s *stride) index(i int, h halves) uint64 {
	a, b := s.start(h)
	return s.reduce(a + uint64(i)*b)
}

// appendIndices appends all k indices. It adds and subtracts instead of dividing.
func (s *stride) appendIndices(dst []uint64, h halves) []uint64 {
	a, b := s.start(h)
	for range s.k {
		dst = append(dst, a)
		if a += b; a >= s.m {
			a -= s.m
		}
	}
	return dst
}
