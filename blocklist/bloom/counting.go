package bloom

import (
	"bytes"
	"fmt"
	"slices"

	"spamgate/hashfamily"
)

// DefaultCounterBits is the usual size of a counter. If half of the bits are set
// and the functions are independent, the number of keys at a position has a Poisson
// distribution with mean ln 2, and a counter of 4 bits is saturated with a
// probability of 1.6e-15. (Fan, Cao, Almeida and Broder, "Summary Cache", IEEE/ACM
// Transactions on Networking 8(3), 2000, derive four bits the same way. Of the
// classic hashes BP maps all names under .com to one position, and saturates it.)
const DefaultCounterBits = 4

// Counting is a Bloom filter from which keys can be removed. Beside each bit it has
// a counter of the keys that set it, and the bit is set while the counter is not 0.
//
// The bits are a [Filter] of their own, equal to the bit to a Filter with the same
// keys, and a lookup costs the same. The price is memory: counters of N bits take N
// times as much as the bitmap. For 2^28 positions that is 32 MiB and, with 4 bits,
// another 128 MiB.
//
// A key counts once at each position, even if several of its indices are the same
// (those of PJW and ELF always are). A counter that has reached its largest value
// is saturated: the number of its keys is unknown from then on, so it keeps its
// value and its bit stays set. That causes false positives after removals, but
// never false negatives.
//
// Any number of goroutines may read at the same time, but none while Add, AddAll or
// Remove runs. To go on reading, change a [Counting.Clone].
type Counting struct {
	filter    *Filter
	counters  counters
	saturated uint64
}

// NewCounting returns an empty counting filter over the family's M positions, at
// most [MaxBits], with counters of 4, 8 or 16 bits.
func NewCounting(f hashfamily.Family, counterBits int) (*Counting, error) {
	if counterBits != 4 && counterBits != 8 && counterBits != 16 {
		return nil, fmt.Errorf("counting filter: counters of %d bits: use 4, 8 or 16", counterBits)
	}
	filter, err := New(f)
	if err != nil {
		return nil, fmt.Errorf("counting filter: %w", err)
	}
	return &Counting{filter: filter, counters: newCounters(filter.m, counterBits)}, nil
}

// Add adds a key. A key that was added twice has to be removed twice.
func (c *Counting) Add(key []byte) { c.count(c.indices(key)) }

// AddAll adds all keys. It is faster than [Counting.Add] for each, since the keys
// of a batch are hashed together.
func (c *Counting) AddAll(keys [][]byte) {
	for batch := range slices.Chunk(keys, fillBatch) {
		for indices := range slices.Chunk(c.filter.hash(batch), c.filter.k) {
			c.count(distinct(indices))
		}
	}
}

// count adds a key with these positions.
func (c *Counting) count(indices []uint64) {
	for _, i := range indices {
		n := c.counters.at(i)
		if n == c.counters.most {
			continue
		}
		if n == 0 {
			c.filter.bits[i>>3] |= 1 << (i & 7)
			c.filter.setBits++
		}
		c.counters.put(i, n+1)
		if n+1 == c.counters.most {
			c.saturated++
		}
	}
}

// Remove removes a key that was added; call it once for each time that the key was
// added. The caller must know that the key was added, from an exact index or the
// like. MayContain is not enough: the counters of a false positive belong to other
// keys, and removing it can make those disappear. If the key is certainly absent,
// because one of its bits is clear, Remove returns false and changes nothing.
func (c *Counting) Remove(key []byte) bool {
	indices := c.indices(key)
	if !c.filter.allSet(indices) {
		return false
	}
	for _, i := range indices {
		n := c.counters.at(i)
		if n == c.counters.most {
			continue
		}
		c.counters.put(i, n-1)
		if n == 1 {
			c.filter.bits[i>>3] &^= 1 << (i & 7)
			c.filter.setBits--
		}
	}
	return true
}

// indices returns the positions of key, each once. They are valid until the next
// call.
func (c *Counting) indices(key []byte) []uint64 {
	c.filter.indices = c.filter.family.AppendIndices(c.filter.indices[:0], key)
	return distinct(c.filter.indices)
}

// distinct moves the first of each index to the front and returns those.
func distinct(indices []uint64) []uint64 {
	once := indices[:0]
	for _, i := range indices {
		if !slices.Contains(once, i) {
			once = append(once, i)
		}
	}
	return once
}

// MayContain reports whether key may have been added, as [Filter.MayContain] does:
// false is certain, unless a key was removed that had not been added.
func (c *Counting) MayContain(key []byte) bool { return c.filter.MayContain(key) }

// Filter returns the filter's bits, to read their counts and rates. It changes with
// Add and Remove. Do not call methods on it that change it.
func (c *Counting) Filter() *Filter { return c.filter }

// CounterBits returns the size of a counter: 4, 8 or 16 bits.
func (c *Counting) CounterBits() int { return c.counters.width }

// Bytes returns the memory of bitmap and counters.
func (c *Counting) Bytes() uint64 { return c.filter.Bytes() + uint64(len(c.counters.packed)) }

// Saturated returns the number of saturated counters, whose bits stay set.
func (c *Counting) Saturated() uint64 { return c.saturated }

// Clone returns a copy that shares nothing with c but the family. It takes as long
// as copying the memory.
func (c *Counting) Clone() *Counting {
	clone := *c
	filter := *c.filter
	filter.bits = bytes.Clone(filter.bits)
	filter.indices = make([]uint64, 0, filter.k)
	clone.filter = &filter
	clone.counters.packed = bytes.Clone(clone.counters.packed)
	return &clone
}
