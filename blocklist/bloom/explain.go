package bloom

import (
	"fmt"
	"math/bits"

	"github.com/FastFilter/xorfilter"

	"spamgate/hashfamily"
)

// Explanation shows how a filter answers for one key.
type Explanation struct {
	// Maybe is the answer of MayContain.
	Maybe bool `json:"maybe"`

	// Part is the number, from 0, of the bitmap or fuse filter that the key
	// belongs to, and Parts the number of them.
	Part  int `json:"part"`
	Parts int `json:"parts"`

	// Probes are the bits of a Bloom filter, in the order of the family.
	Probes []Probe `json:"probes,omitempty"`

	// Fingerprint is the value that a fuse filter expects as the exclusive or of
	// its Places.
	Fingerprint uint64  `json:"fingerprint,omitempty"`
	Places      []Place `json:"places,omitempty"`
}

// Probe is a bit that a Bloom filter reads.
type Probe struct {
	Hash string `json:"hash"` // the name of the hash

	// Value is the key's hash before it is reduced to the bit's position. If the
	// family derives all positions from one hash it is the position.
	Value uint64 `json:"value"`
	Index uint64 `json:"index"`
	Set   bool   `json:"set"`
}

// Place is a fingerprint that a fuse filter reads.
type Place struct {
	Index uint64 `json:"index"`
	Value uint64 `json:"value"`
}

// Explain shows how [Filter.MayContain] answers. It reads all bits.
func (f *Filter) Explain(key []byte) Explanation {
	e := Explanation{Maybe: true, Parts: 1}
	values := wholeHashes(f.family)
	for i := range f.k {
		p := Probe{Hash: hashName(f.family, i), Index: f.family.Index(i, key)}
		p.Value = p.Index
		if values != nil {
			p.Value = values.Index(i, key)
		}
		p.Set = f.bit(p.Index) != 0
		e.Maybe = e.Maybe && p.Set
		e.Probes = append(e.Probes, p)
	}
	return e
}

// wholeHashes returns the family over so many bits that its indices are its hashes,
// or nil if there is no such family.
func wholeHashes(f hashfamily.Family) hashfamily.Family {
	switch f.(type) {
	case *hashfamily.Classic, *hashfamily.Weighted: // hashes of 32 bits
	default:
		return nil
	}
	spec, err := hashfamily.ParseSpec(f.Name())
	if err != nil {
		return nil
	}
	whole, err := spec.New(hashfamily.Params{M: 1 << 32})
	if err != nil {
		return nil
	}
	return whole
}

// hashName returns the name of the i-th hash. For a family that derives all indices
// from one hash it is the formula of the index.
func hashName(f hashfamily.Family, i int) string {
	switch f := f.(type) {
	case interface{ HashName(i int) string }:
		return f.HashName(i)
	case *hashfamily.Double, *hashfamily.Seeded:
		return stepName(i)
	}
	return fmt.Sprintf("%s-%d", f.Name(), i+1)
}

// stepName returns the formula of an index in double hashing: "a", "a+b", "a+2b".
func stepName(i int) string {
	switch i {
	case 0:
		return "a"
	case 1:
		return "a+b"
	}
	return fmt.Sprintf("a+%db", i)
}

// Explain shows how [Sharded.MayContain] answers.
func (s *Sharded) Explain(hash uint64, key []byte) Explanation {
	i := 0
	if len(s.shards) > 1 {
		i = int(s.shard(hash))
	}
	e := s.shards[i].Explain(key)
	e.Part, e.Parts = i, len(s.shards)
	return e
}

// Explain shows how [Fuse.MayContain] answers.
func (f *Fuse) Explain(hash uint64) Explanation {
	e := Explanation{Parts: len(f.filters)}
	if len(f.filters) == 0 {
		return e
	}
	high, _ := bits.Mul64(hash, uint64(len(f.filters)))
	e.Part = int(high)
	switch filter := &f.filters[high]; f.width {
	case 8:
		explainFuse(&e, &filter.narrow, hash)
	case 16:
		explainFuse(&e, &filter.middle, hash)
	default:
		explainFuse(&e, &filter.wide, hash)
	}
	return e
}

// explainFuse does what xorfilter's Contains does: it mixes the key's hash once
// more with the seed (murmur64), which chooses a place, and one in each of the next
// two segments.
func explainFuse[T xorfilter.Unsigned](e *Explanation, f *xorfilter.BinaryFuse[T], hash uint64) {
	if len(f.Fingerprints) == 0 {
		return
	}
	mixed := murmur64(hash + f.Seed)
	first, _ := bits.Mul64(mixed, uint64(f.SegmentCountLength))
	second := uint32(first) + f.SegmentLength
	third := second + f.SegmentLength
	second ^= uint32(mixed>>18) & f.SegmentLengthMask
	third ^= uint32(mixed) & f.SegmentLengthMask
	value := T(0)
	for _, index := range []uint32{uint32(first), second, third} {
		fingerprint := f.Fingerprints[index]
		value ^= fingerprint
		e.Places = append(e.Places, Place{Index: uint64(index), Value: uint64(fingerprint)})
	}
	want := T(mixed ^ mixed>>32)
	e.Fingerprint, e.Maybe = uint64(want), value == want
}

// murmur64 returns the last step of MurmurHash3, as xorfilter uses it.
func murmur64(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
