package hashlab

import (
	"context"
	"encoding/binary"
	"encoding/hex"

	"github.com/minio/highwayhash"
	"github.com/twmb/murmur3"
	"github.com/zeebo/xxh3"

	"spamgate/hashfamily"
)

// publicKey is the key of keyed hashes in the laboratory: fixed and known, so
// that a run can be repeated. It is 00 01 02 … 1f.
var publicKey = func() (key [hashfamily.KeySize]byte) {
	for i := range key {
		key[i] = byte(i)
	}
	return key
}()

// PublicKey is the laboratory's fixed key of keyed families, in hexadecimal.
func PublicKey() string { return hex.EncodeToString(publicKey[:]) }

// hashSubject is a single hash that is looked at.
type hashSubject struct {
	Subject
	bits int // width of the hash: it is below 2^bits
	sum  func(key []byte) uint64

	// sum32 is the hash without the detour through sum, where it has one: to be
	// timed.
	sum32 func(key []byte) uint32
}

// hashSubjects are the single hashes in the order of the tables: the eleven,
// the halves h1 that the double families start from, and the controls. The
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
		whole("Murmur3", KindHash, murmur),
		whole(Ideal, KindControl, idealHash(seed)),
		whole(XXH3, KindControl, xxh3.Hash))
}

// highway is the first half of HighwayHash-128 under the public key.
func highway(key []byte) uint64 {
	sum := highwayhash.Sum128(key, publicKey[:])
	return binary.LittleEndian.Uint64(sum[:8])
}

// murmur is the first half of MurmurHash3-128.
func murmur(key []byte) uint64 {
	h1, _ := murmur3.Sum128(key)
	return h1
}

// idealHash is the first draw of the control of ideal hashes, all 64 bits of it.
func idealHash(seed uint64) func([]byte) uint64 {
	f := newIdeal(seed, 1, 1)
	return func(key []byte) uint64 {
		random := f.draws(f.digest(key))
		return random.Uint64()
	}
}

// sums hashes all keys of a corpus; false when ctx ended before.
func (h hashSubject) sums(ctx context.Context, keys [][]byte) ([]uint64, bool) {
	all := make([]uint64, len(keys))
	for i, key := range keys {
		if ended(ctx, i) {
			return nil, false
		}
		all[i] = h.sum(key)
	}
	return all, true
}
