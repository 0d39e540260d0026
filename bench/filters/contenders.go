package main

import (
	"fmt"

	"github.com/FastFilter/xorfilter"
	other "github.com/bits-and-blooms/bloom/v3"
	"github.com/zeebo/xxh3"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
)

// filter is a filled filter.
type filter struct {
	bits uint64

	// count looks up all keys and returns how many the filter may contain. Each
	// filter has a loop of its own, which calls it as its users would.
	count func(keys [][]byte) int
}

// contender is a kind of filter that is measured.
type contender struct {
	name  string
	build func(keys [][]byte) (filter, error)
}

// rival is the contender that the others are compared with.
const rival = "bits-and-blooms"

// plan holds the sizes that all contenders are made for.
type plan struct {
	entries     int
	classicBits uint64
	fpr         float64 // the rate of the classic filter, which the others are made for
	bits        uint64  // the rival's choice for entries and fpr
	hashes      int
}

// leastFPR is the least rate that filters are made for: with few entries the
// classic filter's own rate is extremely low.
const leastFPR = 1e-9

func newPlan(entries int, classicBits uint64) (plan, error) {
	family, err := hashfamily.NewClassic(classicBits)
	if err != nil {
		return plan{}, err
	}
	p := plan{entries: entries, classicBits: classicBits}
	p.fpr = max(leastFPR, bloom.FPR(classicBits, family.Independent(), float64(entries)))
	bits, hashes := other.EstimateParameters(uint(entries), p.fpr)
	p.bits, p.hashes = uint64(bits), int(hashes)
	return p, nil
}

// contenders returns the contenders in the order of the table.
func (p plan) contenders() []contender {
	return []contender{
		{rival, p.buildRival},
		{"spamgate classic", func(keys [][]byte) (filter, error) { return p.buildClassic(keys, false) }},
		{"spamgate classic, huge pages", func(keys [][]byte) (filter, error) { return p.buildClassic(keys, true) }},
		{"spamgate double", func(keys [][]byte) (filter, error) {
			// The time does not depend on the key.
			family, err := hashfamily.NewDouble(p.bits, p.hashes, make([]byte, hashfamily.KeySize))
			return fill(family, err, keys, false)
		}},
		{"spamgate seeded", func(keys [][]byte) (filter, error) {
			family, err := hashfamily.NewSeeded(p.bits, min(p.hashes, hashfamily.MaxSeededK), 0)
			return fill(family, err, keys, false)
		}},
		{"binary fuse, 8 bits", buildFuse[uint8]},
		{"binary fuse, 16 bits", buildFuse[uint16]},
	}
}

func (p plan) buildRival(keys [][]byte) (filter, error) {
	f := other.NewWithEstimates(uint(p.entries), p.fpr)
	for _, key := range keys {
		f.Add(key)
	}
	return filter{bits: uint64(f.Cap()), count: func(keys [][]byte) int {
		n := 0
		for _, key := range keys {
			if f.Test(key) {
				n++
			}
		}
		return n
	}}, nil
}

func (p plan) buildClassic(keys [][]byte, hugePages bool) (filter, error) {
	family, err := hashfamily.NewClassic(p.classicBits)
	return fill(family, err, keys, hugePages)
}

// fill makes one of spamgate's filters; err is the error of making the family.
func fill(family hashfamily.Family, err error, keys [][]byte, hugePages bool) (filter, error) {
	if err != nil {
		return filter{}, err
	}
	f, err := bloom.New(family)
	if err != nil {
		return filter{}, err
	}
	f.AddAll(keys)
	if hugePages {
		f.UseHugePages()
	}
	return filter{bits: f.M(), count: func(keys [][]byte) int {
		n := 0
		for _, key := range keys {
			if f.MayContain(key) {
				n++
			}
		}
		return n
	}}, nil
}

// buildFuse makes a binary fuse filter. It takes keys as 64-bit numbers: hashing
// them is part of its cost.
func buildFuse[T xorfilter.Unsigned](keys [][]byte) (filter, error) {
	sums := make([]uint64, len(keys))
	for i, key := range keys {
		sums[i] = xxh3.Hash(key)
	}
	f, err := xorfilter.NewBinaryFuse[T](sums)
	if err != nil {
		return filter{}, fmt.Errorf("building a binary fuse filter: %w", err)
	}
	var fingerprint T
	width := 8
	if ^fingerprint > 0xFF {
		width = 16
	}
	return filter{bits: uint64(len(f.Fingerprints) * width), count: func(keys [][]byte) int {
		n := 0
		for _, key := range keys {
			if f.Contains(xxh3.Hash(key)) {
				n++
			}
		}
		return n
	}}, nil
}
