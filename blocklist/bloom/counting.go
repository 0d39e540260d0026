package bloom

import (
	"bytes"
	"fmt"
	"slices"

	"spamgate/hashfamily"
)

// DefaultCounterBits is the usual size of a counter. Where half of the bits are
// set and the functions independent, the keys of a position are distributed as
// Poisson says with ln 2 on average, and a counter of 4 bits is saturated with a
// probability of 1.6e-15. (Fan, Cao, Almeida and Broder, "Summary Cache", IEEE/ACM
// Transactions on Networking 8(3), 2000, come to four bits the same way. Of the
// classic hashes BP puts all names under .com on one position, and saturates it.)
const DefaultCounterBits = 4

// Counting is a Bloom filter from which keys can be removed: beside each bit
// stands a counter of the keys that have it, and the bit is set while the counter
// is not 0.
//
// The bits are a [Filter] of their own, so that looking up costs what it costs
// there, and the bitmap is to the bit that of a Filter to which the same keys
// were added. The price is memory: with counters of N bits it is N+1 bits a
// position, that is (M+7)/8 bytes of bitmap and N times as many of counters. For
// 2^28 positions these are 32 MiB and, with 4 bits, another 128 MiB.
//
// A key counts once at each position, however many of its indices fall there
// (PJW and ELF always do): to count it twice would fill the counter in half the
// time and tell nothing. A counter that has reached its largest value is
// saturated: nobody knows any more how many keys it stands for, so it stays as it
// is and its bit set for good. That causes false positives after removals, never
// false negatives.
//
// Any number of goroutines may read at the same time, but none while Add, AddAll
// or Remove runs. Who must not stop reading changes a [Counting.Clone].
type Counting struct {
	filter    *Filter
	counters  counters
	saturated uint64
}

// NewCounting makes an empty counting filter for the family, over the family's M
// positions, of which there may be up to [MaxBits], with counters of 4, 8 or 16
// bits.
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

// Add adds a key, as often as it is called: a key that was added twice has to be
// removed twice.
func (c *Counting) Add(key []byte) { c.count(c.indices(key)) }

// AddAll adds all keys, each as [Counting.Add] does, but faster for many: those of
// a batch are hashed together.
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

// Remove takes a key away that was added, once for each time it was added. It is
// for keys that are known to have been added, by an exact index or the like, and
// not merely by MayContain: a false positive's counters belong to other keys, and
// removing it makes those disappear, or some of them. What is certainly absent,
// since one of its bits is clear, is refused: Remove returns false and changes
// nothing.
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

// distinct moves each of the indices to the front once, and returns those.
func distinct(indices []uint64) []uint64 {
	once := indices[:0]
	for _, i := range indices {
		if !slices.Contains(once, i) {
			once = append(once, i)
		}
	}
	return once
}

// MayContain reports whether key may be there: false is certain as long as
// nothing was removed that had not been added. It is [Filter.MayContain].
func (c *Counting) MayContain(key []byte) bool { return c.filter.MayContain(key) }

// Filter returns the filter's read side: its bits, counts and rates. It changes with
// Add and Remove; its own Add and AddAll must not be called.
func (c *Counting) Filter() *Filter { return c.filter }

// CounterBits returns the size of a counter: 4, 8 or 16 bits.
func (c *Counting) CounterBits() int { return c.counters.width }

// Saturated returns how many counters are saturated, so that their bits stay set.
func (c *Counting) Saturated() uint64 { return c.saturated }

// Clone returns a copy that has nothing in common with c but the family. It takes
// as long as copying the memory.
func (c *Counting) Clone() *Counting {
	clone := *c
	filter := *c.filter
	filter.bits = bytes.Clone(filter.bits)
	filter.indices = make([]uint64, 0, filter.k)
	clone.filter = &filter
	clone.counters.packed = bytes.Clone(clone.counters.packed)
	return &clone
}
