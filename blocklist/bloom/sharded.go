package bloom

import (
	"errors"
	"fmt"
	"math/bits"

	"spamgate/hashfamily"
)

// Sharded is a Bloom filter of as many equal bitmaps as its keys need. A hash of
// each key chooses its bitmap. So a family whose hashes end at 32 bits, and whose
// bitmap ends at [MaxBits], can hold any number of keys, and a lookup costs as much
// as in one bitmap, plus the hash.
//
// The caller provides the hash: 64 bits that are evenly distributed and secret,
// such as a keyed HighwayHash. Shard i of s has the hashes from i·2^64/s to
// (i+1)·2^64/s, so keys in the order of their hashes fill one shard after another.
// With one shard it equals a [Filter], and the hash is ignored.
//
// Any number of goroutines may call methods that only read at the same time, but
// none while [Sharded.Fill] or [Sharded.Unite] runs.
type Sharded struct {
	shards []*Filter
}

// NewSharded returns an empty filter of so many bitmaps, at least one, over the
// family's M bits each. With several, M must be a multiple of 64.
func NewSharded(family hashfamily.Family, shards int) (*Sharded, error) {
	return newSharded(family, shards, func(size int) []byte { return make([]byte, size) })
}

// newSharded makes the filter of NewSharded with the memory of each shard from
// alloc.
func newSharded(family hashfamily.Family, shards int, alloc func(size int) []byte) (*Sharded, error) {
	if shards < 1 {
		return nil, fmt.Errorf("sharded filter: %d shards: use one or more", shards)
	}
	s := &Sharded{shards: make([]*Filter, shards)}
	for i := range s.shards {
		var err error
		if s.shards[i], err = newOver(family, alloc); err != nil {
			return nil, err
		}
	}
	if shards > 1 && family.M()%64 != 0 {
		return nil, errors.New("sharded filter: the number of bits of a shard is not a multiple of 64")
	}
	return s, nil
}

// MayContain reports whether key may have been added, as [Filter.MayContain] does.
// Hash is the key's hash.
func (s *Sharded) MayContain(hash uint64, key []byte) bool {
	if len(s.shards) == 1 {
		return s.shards[0].MayContain(key)
	}
	return s.shards[s.shard(hash)].MayContain(key)
}

// shard returns the number of the shard of a hash: hash·s/2^64.
func (s *Sharded) shard(hash uint64) uint64 {
	high, _ := bits.Mul64(hash, uint64(len(s.shards)))
	return high
}

// shardHashes returns the first and the last hash of shard i of s.
func shardHashes(i, s int) (first, last uint64) {
	first, last = shardStart(i, s), shardStart(i+1, s)-1
	return first, last // of the last shard 0-1, which is 2^64-1
}

// shardStart returns ⌈i·2^64/s⌉. For i = s that is 2^64, or 0 in 64 bits.
func shardStart(i, s int) uint64 {
	if i == s {
		return 0
	}
	start, rest := bits.Div64(uint64(i), 0, uint64(s))
	if rest > 0 {
		start++
	}
	return start
}

// Shards returns the bitmaps, to read their counts and rates.
func (s *Sharded) Shards() []*Filter { return s.shards }

// Family returns the hash family of all shards.
func (s *Sharded) Family() hashfamily.Family { return s.shards[0].family }

// M returns the number of bits of all shards together.
func (s *Sharded) M() uint64 { return uint64(len(s.shards)) * s.shards[0].m }

// K returns the number of index functions.
func (s *Sharded) K() int { return s.shards[0].k }

// SetBits returns the number of bits that are set.
func (s *Sharded) SetBits() uint64 {
	n := uint64(0)
	for _, f := range s.shards {
		n += f.setBits
	}
	return n
}

// Bytes returns the memory that the bitmaps take.
func (s *Sharded) Bytes() uint64 { return uint64(len(s.shards)) * s.shards[0].Bytes() }

// FillRatio returns the share of the bits that is set, from 0 to 1.
func (s *Sharded) FillRatio() float64 { return float64(s.SetBits()) / float64(s.M()) }

// EstimatedEntries returns the sum of the shards' [Filter.EstimatedEntries].
func (s *Sharded) EstimatedEntries() float64 {
	return s.sum((*Filter).EstimatedEntries)
}

// ExpectedFPR returns the mean of the shards' [Filter.ExpectedFPR] with n different
// keys, which spread evenly over them, since an absent
// key belongs to each of them with the same probability.
func (s *Sharded) ExpectedFPR(n float64) float64 {
	shards := float64(len(s.shards))
	return s.sum(func(f *Filter) float64 { return f.ExpectedFPR(n / shards) }) / shards
}

// Expect returns FillRatio and ExpectedFPR for a filter with n different keys,
// which spread evenly over the shards.
func (s *Sharded) Expect(n float64) (fill, fpr float64) {
	return s.shards[0].Expect(n / float64(len(s.shards)))
}

func (s *Sharded) sum(count func(*Filter) float64) float64 {
	sum := 0.0
	for _, f := range s.shards {
		sum += count(f)
	}
	return sum
}

// UseHugePages calls [Filter.UseHugePages] for each shard.
func (s *Sharded) UseHugePages() {
	for _, f := range s.shards {
		f.UseHugePages()
	}
}
