package bloom

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/minio/highwayhash"
)

// hashed is a key with its hash.
type hashed struct {
	hash uint64
	key  []byte
}

var testHashKey = bytes.Repeat([]byte{7}, highwayhash.Size)

func hashOf(key []byte) uint64 { return highwayhash.Sum64(key, testHashKey) }

// makeKeys makes n different keys that begin with a word, in the order in which a
// [Scan] gives them.
func makeKeys(word string, n int) []hashed {
	keys := make([]hashed, n)
	for i := range keys {
		key := fmt.Appendf(nil, "%s%d.host%d.example", word, i, i%997)
		keys[i] = hashed{hashOf(key), key}
	}
	sortKeys(keys)
	return keys
}

func sortKeys(keys []hashed) {
	slices.SortFunc(keys, func(a, b hashed) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), bytes.Compare(a.key, b.key))
	})
}

// scanOf is the [Scan] of sorted keys. It gives each of them in the same place,
// so that whoever keeps a key without copying it is found out.
func scanOf(keys []hashed) Scan {
	return func(first, last uint64, yield func(hash uint64, key []byte) bool) error {
		var room []byte
		pos, _ := slices.BinarySearchFunc(keys, first, func(k hashed, hash uint64) int { return cmp.Compare(k.hash, hash) })
		for _, k := range keys[pos:] {
			room = append(room[:0], k.key...)
			if k.hash > last || !yield(k.hash, room) {
				return nil
			}
		}
		return nil
	}
}

var errScan = errors.New("the segment is damaged")

// failingScan fails after some keys.
func failingScan(keys []hashed, after int) Scan {
	return func(first, last uint64, yield func(hash uint64, key []byte) bool) error {
		n := 0
		err := scanOf(keys)(first, last, func(hash uint64, key []byte) bool {
			n++
			return n <= after && yield(hash, key)
		})
		if err == nil && n > after {
			return errScan
		}
		return err
	}
}
