package hashlab

import (
	"bytes"
	"math/bits"
	"slices"
	"testing"
)

// distance returns the number of bits in which two keys of one length differ.
func distance(a, b []byte) (n int) {
	for i := range a {
		n += bits.OnesCount8(a[i] ^ b[i])
	}
	return n
}

// keyset returns a keyset of n keys.
func keyset(tb testing.TB, name string, seed uint64, n int) *Corpus {
	tb.Helper()
	sources := keysetSources(seed, n)
	return made(tb, sources[slices.IndexFunc(sources, func(s source) bool { return s.name == name })])
}

func TestSparse(t *testing.T) {
	var counts [sparseBits + 1]int
	keys := keyset(t, "sparse", 1, 10_000).Keys
	for _, key := range keys {
		if len(key) != sparseBytes {
			t.Fatalf("%d bytes", len(key))
		}
		counts[distance(key, make([]byte, sparseBytes))]++
	}
	// Of 10,000 random ones of 2,796,417 some 117 have two bits, 0.9 one and 9,882 three.
	if counts[3] < 9820 || counts[3] > 9940 || counts[2] < 60 || counts[1] > 10 {
		t.Errorf("keys by number of bits: %d", counts)
	}
}

func TestPermuted(t *testing.T) {
	var lengths [permutedBlocks + 1]int
	blocks := map[string]bool{}
	for _, key := range keyset(t, "permutation", 1, 10_000).Keys {
		if len(key)%4 != 0 || len(key) == 0 || len(key) > 4*permutedBlocks {
			t.Fatalf("%d bytes", len(key))
		}
		lengths[len(key)/4]++
		for block := range slices.Chunk(key, 4) {
			blocks[string(block)] = true
			if block[1] != 0 || block[2] != 0 || block[0] > 7 || block[3]&31 != 0 || block[0] != 0 && block[3] != 0 {
				t.Fatalf("block %x", block)
			}
		}
	}
	// 15^6 of 12,204,240 texts have six blocks, 93.3%, and 15^5 five, 6.2%.
	if len(blocks) != 15 || lengths[6] < 9240 || lengths[6] > 9420 || lengths[5] < 540 || lengths[5] > 700 {
		t.Errorf("%d blocks; texts by number of blocks: %d", len(blocks), lengths)
	}
}

func TestDifferential(t *testing.T) {
	keys := keyset(t, "differential", 1, 2*2081).Keys
	for base := range slices.Chunk(keys, 2081) {
		var counts [3]int
		for _, key := range base {
			counts[distance(key, base[0])]++ // at most 2, or it panics
		}
		if counts != [3]int{1, 64, 64 * 63 / 2} {
			t.Errorf("keys by distance from the base: %d", counts)
		}
	}
}

// TestKeysetsRepeat: the seed decides which keys there are.
func TestKeysetsRepeat(t *testing.T) {
	for _, name := range []string{"sparse", "permutation", "differential"} {
		a, b, c := keyset(t, name, 1, 2000), keyset(t, name, 1, 2000), keyset(t, name, 2, 2000)
		if !slices.EqualFunc(a.Keys, b.Keys, bytes.Equal) || slices.EqualFunc(a.Keys, c.Keys, bytes.Equal) {
			t.Errorf("%s does not depend on the seed alone", name)
		}
	}
}

// TestKeysetsFindDefects: over the keysets the tests find what is hidden from
// names, and nothing in the ideal control.
func TestKeysetsFindDefects(t *testing.T) {
	ctx, good := t.Context(), idealHash(3)
	// Ignores the high bits of each byte, which no name has.
	low := hashSubject{Subject: Subject{"low bits", KindHash}, bits: 64, sum: func(key []byte) uint64 {
		own := append([]byte(nil), key...)
		for i := range own {
			own[i] &= 0x7F
		}
		return good(own)
	}}
	// Does not see which of two blocks comes first.
	unordered := hashSubject{Subject: Subject{"unordered", KindHash}, bits: 64, sum: func(key []byte) (sum uint64) {
		for block := range slices.Chunk(key, 4) {
			sum += good(block)
		}
		return sum
	}}
	ideal := subjectsNamed(t, "ideal")[0]
	for _, tt := range []struct {
		corpus string
		hash   hashSubject
		found  bool
	}{
		{"sparse", low, true}, {"permutation", low, true}, {"differential", low, true},
		{"sparse", unordered, true}, {"permutation", unordered, true}, {"differential", unordered, false},
		{"sparse", ideal, false}, {"permutation", ideal, false}, {"differential", ideal, false},
	} {
		c := keyset(t, tt.corpus, 1, 20_000)
		for _, r := range measureCollisions(ctx, c, []hashSubject{tt.hash}) {
			if r.Bits == 64 && (r.Collisions > 100) != tt.found {
				t.Errorf("%s over %s: %d equal values", tt.hash.Name, tt.corpus, r.Collisions)
			}
		}
	}
}
