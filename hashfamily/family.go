package hashfamily

import "fmt"

// Hash is one classic string hash.
type Hash struct {
	// Name is the short name that configurations and tables use, such as "RS".
	Name string

	// Sum hashes a key. It does not keep or change the key.
	Sum func(key []byte) uint32
}

// Hashes returns the eleven classic hashes in the family's order: RS, JS, PJW,
// ELF, BKDR, SDBM, DJB, DEK, BP, FNV, AP. The slice is the caller's.
func Hashes() []Hash {
	return []Hash{
		{"RS", RS},
		{"JS", JS},
		{"PJW", PJW},
		{"ELF", ELF},
		{"BKDR", BKDR},
		{"SDBM", SDBM},
		{"DJB", DJB},
		{"DEK", DEK},
		{"BP", BP},
		{"FNV", FNV},
		{"AP", AP},
	}
}

// Family is k index functions over m bits. The same key always has the same
// indices. Methods do not keep or change the key, and may be called from several
// goroutines at once.
type Family interface {
	// Name returns the name of the family in a configuration, such as "classic" or
	// "classic:RS,JS,AP". [ParseSpec] parses it.
	Name() string

	// K returns the number of index functions, at least 1.
	K() int

	// M returns the number of bits, at least 1. Every index is in [0, M).
	M() uint64

	// Index returns index i of key, for 0 ≤ i < K.
	Index(i int, key []byte) uint64

	// AppendIndices appends all K indices of key to dst, in order. It does not
	// allocate if dst has the capacity.
	AppendIndices(dst []uint64, key []byte) []uint64
}

// shape is what the families have in common.
type shape struct {
	name string
	m    uint64
	k    int
}

// newShape returns a shape, if a family may have m bits and k index functions.
func newShape(name string, m uint64, k int, mostM uint64, mostK int) (shape, error) {
	if m < 1 || m > mostM {
		return shape{}, fmt.Errorf("hash family %s: %d bits: use 1 to %d", name, m, mostM)
	}
	if k < 1 || k > mostK {
		return shape{}, fmt.Errorf("hash family %s: %d hashes: use 1 to %d", name, k, mostK)
	}
	return shape{name, m, k}, nil
}

// Name returns the name of the family, which [ParseSpec] parses.
func (s *shape) Name() string { return s.name }

// K returns the number of index functions.
func (s *shape) K() int { return s.k }

// M returns the number of bits.
func (s *shape) M() uint64 { return s.m }
