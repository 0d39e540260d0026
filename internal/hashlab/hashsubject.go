package hashlab

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"

	"github.com/minio/highwayhash"
	"github.com/twmb/murmur3"
	"github.com/zeebo/xxh3"

	"spamgate/hashfamily"
)

// publicKey is the laboratory's key of keyed hashes, 00 01 02 … 1f: it is fixed, so
// that a run can be repeated.
var publicKey = func() (key [hashfamily.KeySize]byte) {
	for i := range key {
		key[i] = byte(i)
	}
	return key
}()

// PublicKey returns the laboratory's fixed key of keyed families, in hexadecimal.
func PublicKey() string { return hex.EncodeToString(publicKey[:]) }

// hashSubject is a single hash.
type hashSubject struct {
	Subject
	bits int // width of the hash: values are below 2^bits
	sum  func(key []byte) uint64

	// sum32 is the hash itself if it has 32 bits, to be timed without the detour
	// through sum.
	sum32 func(key []byte) uint32
}

// hashSubjects returns the single hashes in the order of the tables: the eleven,
// the first halves of the hashes of the double families, and the controls. The
// ideal one's values depend on the seed.
func hashSubjects(seed uint64) []hashSubject {
	var all []hashSubject
	for _, h := range hashfamily.Hashes() {
		width := 32
		if h.Name == "PJW" || h.Name == "ELF" {
			width = 28
		}
		all = append(all, hashSubject{
			Subject: Subject{h.Name, KindHash},
			bits:    width,
			sum:     func(key []byte) uint64 { return uint64(h.Sum(key)) },
			sum32:   h.Sum,
		})
	}
	whole := func(name, kind string, sum func([]byte) uint64) hashSubject {
		return hashSubject{Subject: Subject{name, kind}, bits: 64, sum: sum}
	}
	return append(all,
		whole("HighwayHash", KindHash, highway),
		whole("Murmur3", KindHash, func(key []byte) uint64 {
			h1, _ := murmur3.Sum128(key)
			return h1
		}),
		whole(Ideal, KindControl, idealHash(seed)),
		whole(XXH3, KindControl, xxh3.Hash))
}

// OtherHashes returns well-known hashes of the standard library that no family uses, for
// comparison in a run with the default families.
func OtherHashes() []Hash {
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	return []Hash{
		{"FNV-1a", 32, func(key []byte) uint64 { return uint64(fnv1a(key)) }},
		{"CRC32C", 32, func(key []byte) uint64 { return uint64(crc32.Checksum(key, castagnoli)) }},
	}
}

// fnv1a is hash/fnv's New32a without an object for each key, to be timed. (The
// classic FNV is another function: it begins with 0, and multiplies by the number
// with which this one begins.)
func fnv1a(key []byte) uint32 {
	h := uint32(2166136261)
	for _, c := range key {
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}

// subject returns a hash of the caller as a subject.
func (h Hash) subject() hashSubject {
	return hashSubject{Subject: Subject{h.Name, KindHash}, bits: h.Bits, sum: h.Sum}
}

// highway returns the first half of HighwayHash-128 under the public key.
func highway(key []byte) uint64 {
	sum := highwayhash.Sum128(key, publicKey[:])
	return binary.LittleEndian.Uint64(sum[:8])
}

// idealHash returns a hash that is the first draw of the control of ideal hashes,
// with all 64 bits.
func idealHash(seed uint64) func([]byte) uint64 {
	f := newIdeal(seed, 1, 1)
	return func(key []byte) uint64 {
		random := f.draws(f.digest(key))
		return random.Uint64()
	}
}

// sums returns the hashes of all keys, and false if ctx ended early.
func (h hashSubject) sums(ctx context.Context, keys [][]byte) ([]uint64, bool) {
	all := make([]uint64, len(keys))
	for i, key := range keys {
		if stopped(ctx, i) {
			return nil, false
		}
		all[i] = h.sum(key)
	}
	return all, true
}
