package blocklist

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"sync"

	"github.com/minio/highwayhash"

	"spamgate/blocklist/segment"
	"spamgate/hashfamily"
)

// keys are the secrets of one state directory, or of one process where nothing is
// kept. With them nobody can prepare entries that collide.
type keys struct {
	segment segment.Key              // of the hash that indexes are ordered by
	filter  [hashfamily.KeySize]byte // of keyed hash families
	header  [highwayhash.Size]byte   // of the digests in an index's header
}

// secretSize is the size of what keys are derived from.
const secretSize = 32

// deriveKeys makes each use a key of its own (RFC 5869).
func deriveKeys(secret []byte) *keys {
	k := new(keys)
	for use, key := range map[string][]byte{"segment": k.segment[:], "filter": k.filter[:], "header": k.header[:]} {
		derived, err := hkdf.Expand(sha256.New, secret, "spamgate lists "+use, len(key))
		if err != nil {
			panic(err) // for lengths beyond 255 hashes alone
		}
		copy(key, derived)
	}
	return k
}

// processKeys are those where nothing is kept.
var processKeys = sync.OnceValue(func() *keys {
	var secret [secretSize]byte
	rand.Read(secret[:]) // never fails, see crypto/rand
	return deriveKeys(secret[:])
})

// digest is a HighwayHash-256 for the header of an index.
func (k *keys) digest(text []byte) [32]byte { return highwayhash.Sum(text, k.header[:]) }
