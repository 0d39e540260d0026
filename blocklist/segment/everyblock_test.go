package segment

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// blockKeys returns a key of each block of a segment.
func blockKeys(t *testing.T, s *Segment) []string {
	t.Helper()
	var keys []string
	err := s.walk(0, ^uint64(0), "", func(i int, _ uint64, stored []byte) (bool, error) {
		if key, _, ok := recordKey(stored); ok && i == len(keys) {
			keys = append(keys, string(key))
		}
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// ofBlocks returns the bytes of a segment that has so many blocks.
func ofBlocks(t *testing.T, blocks int) []byte {
	t.Helper()
	const perBlock = 100 // about
	var entries []Entry
	for n := blocks * perBlock / 2; ; n++ {
		for len(entries) < n {
			entries = append(entries, Entry{Key: fmt.Sprintf("%d.example", len(entries)), Line: 1 + len(entries)})
		}
		s := build(t, "", BuildOptions{}, 1, entries)
		if got := int(s.blockCount); got == blocks {
			return bytes.Clone(s.data)
		} else if got > blocks {
			t.Fatalf("%d entries make %d blocks, and one less did not make %d", n, got, blocks)
		}
		// What is missing, less a little.
		n += (blocks - int(s.blockCount)) * len(entries) / int(s.blockCount) * 3 / 4
	}
}

// TestEveryBlockFlipped damages each block of a segment while all others were read
// before, and so are known to be good: each damage must be noticed by a lookup in
// that block, and by none in another. What is known of the blocks is a bit for
// each in words of 32: the sizes are one word less and more, and not a whole
// number of them.
func TestEveryBlockFlipped(t *testing.T) {
	for _, blocks := range []int{31, 32, 33, 63, 64, 65, 95} {
		t.Run(fmt.Sprint(blocks, " blocks"), func(t *testing.T) {
			good := ofBlocks(t, blocks)
			whole, err := fromBytes(good)
			if err != nil {
				t.Fatal(err)
			}
			keys := blockKeys(t, whole)
			if len(keys) != blocks {
				t.Fatalf("%d blocks have a key, want %d", len(keys), blocks)
			}
			for damaged := range blocks {
				data := bytes.Clone(good)
				s, err := fromBytes(data)
				if err != nil {
					t.Fatal(err)
				}
				stored, _, err := s.stored(damaged)
				if err != nil {
					t.Fatal(err)
				}
				stored[len(stored)-1] ^= 1 // of data
				for i := range blocks {    // the damaged one comes last
					pos := (damaged + 1 + i) % blocks
					_, found, err := s.Lookup(testKey.Hash([]byte(keys[pos])), []byte(keys[pos]))
					switch {
					case pos == damaged && !errors.Is(err, ErrDamaged):
						t.Errorf("block %d of %d is damaged, and a lookup in it says %t, %v", pos+1, blocks, found, err)
					case pos != damaged && (!found || err != nil):
						t.Errorf("block %d is damaged, and a lookup in block %d says %t, %v", damaged+1, pos+1, found, err)
					}
				}
			}
		})
	}
}
