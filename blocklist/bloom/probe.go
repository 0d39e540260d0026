package bloom

import (
	"sync"

	"spamgate/hashfamily"
)

// MayContain reports whether key may have been added: false is certain, true may be
// wrong (see [Filter.FPR]). It does not allocate. It stops at the first clear bit
// if that is cheaper, so an absent key mostly costs one hash and one or two memory
// accesses.
//
// Most of that cost is waiting for memory, while the processor works ahead on the
// next key as far as its window of instructions reaches. If a hash gives only one
// index, MayContain reads the first bit alone, with as few instructions as
// possible; keys that pass it pay for more hashes, in groups whose reads overlap.
func (f *Filter) MayContain(key []byte) bool {
	// A switch over types: the compiler does not know what an interface's method
	// does with the key, and would put the key on the heap.
	switch family := f.family.(type) {
	case *hashfamily.Classic:
		if f.staged {
			return f.mayContainStaged(family, key)
		}
		return f.mayContainClassic(family, key)
	case *hashfamily.Seeded:
		a, b, c := family.Start(key)
		return f.mayContainSteps(a, b, c)
	case *hashfamily.Double:
		a, b, c := family.Start(key)
		return f.mayContainSteps(a, b, c)
	case *hashfamily.Weighted:
		for p := range f.k {
			if f.bit(family.Index(p, key)) == 0 {
				return false
			}
		}
		return true
	case *hashfamily.Digest:
		var indices [hashfamily.MaxDigestK]uint64
		return f.allSet(family.AppendIndices(indices[:0], key))
	}
	return f.mayContainAny(key)
}

// bit returns bit i, 0 or 1.
func (f *Filter) bit(i uint64) byte { return f.bits[i>>3] >> (i & 7) & 1 }

// allSet reports whether the bits of all indices are set. It reads all of them, so
// that the reads overlap.
func (f *Filter) allSet(indices []uint64) bool {
	all := byte(1)
	for _, i := range indices {
		all &= f.bits[i>>3] >> (i & 7)
	}
	return all != 0
}

// leaders are the hashes that mayContainStaged computes first. They can be computed
// eight bytes at a time (words.go), and no hash passes fewer absent keys.
var leaders = [...]string{"BKDR", "DJB", "DEK"}

// hasLeaders reports whether all leaders are among the family's hashes.
func hasLeaders(c *hashfamily.Classic) bool {
	found := 0
	for i := range c.K() {
		for _, name := range leaders {
			if c.HashName(i) == name {
				found++
			}
		}
	}
	return found == len(leaders)
}

// mayContainStaged implements MayContain for a classic family that has the leaders:
// BKDR alone, then DJB and DEK together, then all hashes in one pass. At 10 million
// entries 28% of the absent keys reach the second stage and 2% the third (see the
// table at probeRank); at 121,570 entries four in a thousand reach the second.
// BenchmarkMayContain compares it with its plain twin.
func (f *Filter) mayContainStaged(c *hashfamily.Classic, key []byte) bool {
	if f.bit(f.reduce(bkdr(key))) == 0 {
		return false
	}
	djb, dek := djbAndDEK(key)
	if f.bit(f.reduce(djb))&f.bit(f.reduce(dek)) == 0 {
		return false
	}
	var indices [len(probeRank)]uint64
	return f.allSet(c.AppendIndices(indices[:0], key))
}

// reduce returns a classic hash modulo m.
func (f *Filter) reduce(hash uint32) uint64 {
	if f.m&(f.m-1) == 0 {
		return uint64(hash) & (f.m - 1)
	}
	return uint64(hash) % f.m
}

// mayContainClassic implements MayContain for any classic family: it computes one
// hash after another, in the order of probeRank. It is the plain twin of
// mayContainStaged.
func (f *Filter) mayContainClassic(c *hashfamily.Classic, key []byte) bool {
	for _, p := range f.probes {
		if f.bit(c.Index(p, key)) == 0 {
			return false
		}
	}
	return true
}

// mayContainSteps implements MayContain for the double and the seeded families: the
// indices start at a, the first step is b, and each step is c longer than the one
// before, modulo m. Each further index costs two additions. In a filter that is half
// full nobody can predict a bit, so it reads two bits together.
func (f *Filter) mayContainSteps(a, b, c uint64) bool {
	for range f.k / 2 {
		second := f.step(a, b)
		if f.bit(a)&f.bit(second) == 0 {
			return false
		}
		b = f.step(b, c)
		a = f.step(second, b)
		b = f.step(b, c)
	}
	return f.k%2 == 0 || f.bit(a) != 0
}

// step returns (a+b) mod m, for a and b below m.
func (f *Filter) step(a, b uint64) uint64 {
	if a += b; a >= f.m {
		a -= f.m
	}
	return a
}

// scratch holds copies of keys for mayContainAny.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// mayContainAny implements MayContain for a family that is known only by its
// interface. The family gets a copy of the key, so that the key can stay on the
// caller's stack.
func (f *Filter) mayContainAny(key []byte) bool {
	buf := scratch.Get().(*[]byte)
	defer scratch.Put(buf)
	*buf = append((*buf)[:0], key...)
	for p := range f.k {
		if f.bit(f.family.Index(p, *buf)) == 0 {
			return false
		}
	}
	return true
}
