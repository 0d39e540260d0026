package hashlab

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"testing"
)

func measureAvalancheOf(tb testing.TB, c *Corpus, subjects []hashSubject) []Avalanche {
	tb.Helper()
	rows := measureAvalanche(context.Background(), c, subjects, 1, false)
	if len(rows) != len(subjects) {
		tb.Fatalf("%d rows of %d hashes", len(rows), len(subjects))
	}
	for i, r := range rows {
		if r.Corpus != c.Name || r.Subject != subjects[i].Subject || len(r.Flips) != 8*r.KeyBytes || len(r.Flips[0]) != subjects[i].bits {
			tb.Fatalf("%s: %d input bits of %d bytes, %d output bits", r.Name, len(r.Flips), r.KeyBytes, len(r.Flips[0]))
		}
	}
	return rows
}

// With 2,000 keys a cell of an ideal hash strays from 1/2 by 0.011; six of that
// is the farthest that one of 8,192 cells should get.
func TestAvalancheOfControls(t *testing.T) {
	for _, r := range measureAvalancheOf(t, comNames(5000), subjectsNamed(t, "ideal", "xxh3", "HighwayHash", "Murmur3")) {
		if r.KeyBytes != avalancheBytes || r.Keys != avalancheKeys {
			t.Errorf("%s: %d keys of %d bytes", r.Name, r.Keys, r.KeyBytes)
		}
		if !near(r.MeanBias, r.Noise, 0.05) || r.WorstBias > 6/math.Sqrt(avalancheKeys) || r.Never != 0 {
			t.Errorf("%s: mean bias %g (noise %g), worst %g, never %g", r.Name, r.MeanBias, r.Noise, r.WorstBias, r.Never)
		}
	}
}

func TestAvalancheOfBadHashes(t *testing.T) {
	c := numbers(3000)
	still := measureAvalancheOf(t, c, badHash(func([]byte) uint64 { return 99 }))[0]
	if still.Never != 1 || still.MeanBias != 1 || still.WorstBias != 1 || still.KeyBytes != 8 {
		t.Errorf("a constant: never %g, mean %g, worst %g, %d bytes", still.Never, still.MeanBias, still.WorstBias, still.KeyBytes)
	}
	// The key's first four bytes as they are: input bit i flips output bit i.
	same := measureAvalancheOf(t, c, badHash(func(key []byte) uint64 { return uint64(binary.LittleEndian.Uint32(key)) }))[0]
	for in, outs := range same.Flips {
		for out, part := range outs {
			if want := map[bool]float64{true: 1, false: 0}[in == out]; part != want {
				t.Fatalf("input bit %d flips output bit %d on %g of the keys, want %g", in, out, part, want)
			}
		}
	}
	if want := 1 - 32.0/(64*32); same.Never != want {
		t.Errorf("never %g, want %g", same.Never, want)
	}
}

// The lowest bit of five of the classics is the parity of the bytes' lowest bits:
// it flips with each of those, always, and with no other bit. PJW and ELF are
// one. BP sees no byte but the last five, and flips for sure or never, as DEK.
func TestAvalancheOfClassics(t *testing.T) {
	for _, r := range measureAvalancheOf(t, comNames(3000), subjectsNamed(t, "RS", "BKDR", "SDBM", "DJB", "FNV")) {
		for in := range r.Flips {
			want := 0.0
			if in%8 == 0 {
				want = 1
			}
			if r.Flips[in][0] != want {
				t.Errorf("%s: input bit %d flips output bit 0 on %g of the keys, want %g", r.Name, in, r.Flips[in][0], want)
			}
		}
	}
	twins := measureAvalancheOf(t, comNames(3000), subjectsNamed(t, "PJW", "ELF"))
	if fmt.Sprint(twins[0].Flips) != fmt.Sprint(twins[1].Flips) {
		t.Error("PJW and ELF differ")
	}
	for _, r := range measureAvalancheOf(t, comNames(3000), subjectsNamed(t, "BP", "DEK")) {
		if r.MeanBias != 1 {
			t.Errorf("%s: mean bias %g", r.Name, r.MeanBias)
		}
		for in := range r.Flips[:8*(avalancheBytes-5)] {
			for out, part := range r.Flips[in] {
				if r.Name == "BP" && part != 0 {
					t.Errorf("BP: input bit %d flips output bit %d", in, out)
				}
			}
		}
	}
}

// Keys are all of one length, as long as it can be with enough different ones.
func TestCutKeys(t *testing.T) {
	mixed := corpusOf("mixed", 100, func(i int) string {
		if i < 50 {
			return fmt.Sprintf("%02d-long-enough-to-be-cut", i)
		}
		return fmt.Sprintf("%02d", i)
	})
	for _, tt := range []struct {
		name         string
		c            *Corpus
		want         int
		keys, length int
	}{
		{"enough long ones", mixed, 50, 50, 16},
		{"too few long ones", mixed, 60, 60, 2},
		{"too few at all", mixed, 200, 100, 2},
		{"one prefix", corpusOf("c", 50, func(i int) string { return fmt.Sprintf("a-prefix-of-many-bytes-%d", i) }), 10, 1, 16},
		{"short", corpusOf("c", 5, func(i int) string { return fmt.Sprint(i) }), 10, 5, 1},
		{"empty keys", corpusOf("c", 5, func(int) string { return "" }), 10, 0, 0},
	} {
		keys := cutKeys(tt.c.Keys, tt.want, stream(1))
		if len(keys) != tt.keys {
			t.Errorf("%s: %d keys, want %d", tt.name, len(keys), tt.keys)
			continue
		}
		seen := make(map[string]bool)
		for _, key := range keys {
			if len(key) != tt.length || seen[string(key)] {
				t.Errorf("%s: %q, want %d bytes, once", tt.name, key, tt.length)
			}
			seen[string(key)] = true
		}
	}
	if rows := measureAvalanche(context.Background(), corpusOf("c", 5, func(int) string { return "" }), hashSubjects(1), 1, false); rows != nil {
		t.Errorf("of empty keys: %d rows", len(rows))
	}
}

// FuzzAvalanche checks the tally of one key against flipping it bit by bit.
func FuzzAvalanche(f *testing.F) {
	f.Add([]byte("a"))
	f.Add([]byte("spam@example.com"))
	f.Add([]byte("\x00\xff\x80"))
	subjects := hashSubjects(1)
	f.Fuzz(func(t *testing.T, key []byte) {
		if len(key) == 0 || len(key) > 64 {
			return
		}
		for _, s := range subjects {
			r, _ := avalanche(context.Background(), s, newFlipKeys([][]byte{key}))
			never := 0
			for in := range 8 * len(key) {
				other := append([]byte(nil), key...)
				other[in/8] ^= 1 << (in % 8)
				changed := s.sum(key) ^ s.sum(other)
				never += s.bits - bits.OnesCount64(changed)
				for out := range s.bits {
					if r.Flips[in][out] != float64(changed>>out&1) {
						t.Fatalf("%s of %q: input bit %d, output bit %d: %g", s.Name, key, in, out, r.Flips[in][out])
					}
				}
			}
			if r.Never != float64(never)/float64(8*len(key)*s.bits) || r.WorstBias != 1 || r.MeanBias != 1 {
				t.Errorf("%s of %q: never %g, worst %g, mean %g", s.Name, key, r.Never, r.WorstBias, r.MeanBias)
			}
		}
	})
}

// The corpus stays as it was, and the full run takes more keys of it.
func TestAvalancheLeavesKeys(t *testing.T) {
	c, untouched := comNames(3000), comNames(3000)
	rows := measureAvalanche(context.Background(), c, subjectsNamed(t, "BP"), 1, true)
	if len(rows) != 1 || rows[0].Keys != 3000 {
		t.Errorf("%d rows", len(rows))
	}
	if fmt.Sprintf("%q", c.Keys) != fmt.Sprintf("%q", untouched.Keys) {
		t.Error("keys were changed")
	}
}
