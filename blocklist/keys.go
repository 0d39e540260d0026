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

// Keys are the secrets that indexes and filters are made with, so that nobody can
// prepare entries that collide. A filter is only good for indexes of the same Keys.
type Keys struct {
	segment segment.Key              // of the hash that indexes are ordered by
	filter  [hashfamily.KeySize]byte // of keyed hash families
	header  [highwayhash.Size]byte   // of the digests in an index's header
}

// SecretSize is the size of what Keys are derived from.
const SecretSize = 32

// NewKeys derives a key for each use from a secret (RFC 5869).
func NewKeys(secret []byte) *Keys {
	k := new(Keys)
	for use, key := range map[string][]byte{"segment": k.segment[:], "filter": k.filter[:], "header": k.header[:]} {
		derived, err := hkdf.Expand(sha256.New, secret, "spamgate lists "+use, len(key))
		if err != nil {
			panic(err) // for lengths beyond 255 hashes alone
		}
		copy(key, derived)
	}
	return k
}

// ProcessKeys returns keys that live as long as the process.
var ProcessKeys = sync.OnceValue(func() *Keys {
	var secret [SecretSize]byte
	rand.Read(secret[:]) // never fails, see crypto/rand
	return NewKeys(secret[:])
})

// Segment returns the key of the hash that indexes are ordered by.
func (k *Keys) Segment() *segment.Key { return &k.segment }

// Digest returns a HighwayHash-256 for the header of an index.
func (k *Keys) Digest(text []byte) [32]byte { return highwayhash.Sum(text, k.header[:]) }
