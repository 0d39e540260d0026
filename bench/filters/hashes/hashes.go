package main

import (
	"github.com/cespare/xxhash/v2"
	"github.com/dchest/siphash"
	"github.com/go-faster/city"

	"spamgate/hashfamily"
	"spamgate/internal/hashlab"
)

// Siphash's key is the laboratory's public one, 00 01 02 …: so the numbers can be
// repeated.
const sipKey0, sipKey1 = 0x0706050403020100, 0x0f0e0d0c0b0a0908

// others returns the hashes that spamgate does not use.
func others() []hashlab.Hash {
	return append(hashlab.OtherHashes(), []hashlab.Hash{
		{Name: "FNV-1a-64", Bits: 64, Sum: fnv1a64},
		{Name: "SipHash-2-4", Bits: 64, Sum: func(key []byte) uint64 { return siphash.Hash(sipKey0, sipKey1, key) }},
		{Name: "XXH64", Bits: 64, Sum: xxhash.Sum64},
		{Name: "wyhash", Bits: 64, Sum: func(key []byte) uint64 { return wyhash(key, 0) }},
		{Name: "CityHash64", Bits: 64, Sum: city.CH64},
	}...)
}

// fnv1a64 is hash/fnv's New64a without an object for each key.
func fnv1a64(key []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range key {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// functions is the number of index functions of the families, that of the classic
// one.
const functions = 11

// families returns a family of each hash of 64 bits: enhanced double hashing of its two halves
// (P. C. Dillinger and P. Manolios, "Bloom Filters in Probabilistic Verification",
// FMCAD 2004), as a filter with one hash would use it.
func families() []hashlab.Family {
	var all []hashlab.Family
	for _, h := range others() {
		if h.Bits < 64 { // halves of 16 bits are too short
			continue
		}
		all = append(all, hashlab.Family{Name: h.Name + "+", K: functions, New: func(m uint64) (hashfamily.Family, error) {
			return enhanced{h, m}, nil
		}})
	}
	return all
}

// enhanced is enhanced double hashing over m bits: index i is
// a + i·b + (i³-i)/6 mod m for the low half a of a hash's bits and the high half b.
type enhanced struct {
	hash hashlab.Hash
	m    uint64
}

func (f enhanced) Name() string { return f.hash.Name + "+" }
func (f enhanced) K() int       { return functions }
func (f enhanced) M() uint64    { return f.m }

func (f enhanced) Index(i int, key []byte) uint64 {
	h, n := f.hash.Sum(key), uint64(i)
	a, b := h&(1<<32-1), h>>32
	return (a + n*b + (n*n*n-n)/6) % f.m
}

func (f enhanced) AppendIndices(dst []uint64, key []byte) []uint64 {
	h := f.hash.Sum(key)
	a, b := h&(1<<32-1), h>>32
	for i := range uint64(functions) {
		dst = append(dst, (a+i*b+(i*i*i-i)/6)%f.m)
	}
	return dst
}
