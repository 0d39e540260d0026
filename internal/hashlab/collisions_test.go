package hashlab

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	"spamgate/internal/disposable"
)

func TestExpectedCollisions(t *testing.T) {
	for _, tt := range []struct {
		n, bits   int
		want      float64
		tolerance float64
	}{
		{0, 28, 0, 0},
		{1, 28, 0, 0},
		{2, 3, 1.0 / 8, 1e-12},                 // the second falls on the first
		{5, 3, 5 - 8*(1-16807.0/32768), 1e-12}, // 7^5 and 8^5, by hand
		{1, 64, 0, 0},                          // not a rounding error
		{1_000_000, 64, 1e6 * 999_999 / 0x1p65, 1e-6},   // pairs alone count
		{121_570, 28, 121_570 * 121_569 / 0x1p29, 1e-3}, // pairs, and a few triples less
	} {
		if got := expectedCollisions(tt.n, tt.bits); !near(got, tt.want, tt.tolerance) {
			t.Errorf("%d keys, 2^%d values: %g, want %g", tt.n, tt.bits, got, tt.want)
		}
	}
}

// The series and the closed formula meet where one takes over from the other.
func TestExpectedCollisionsMeet(t *testing.T) {
	const bits = 24
	n := int(math.Ldexp(1e-4, bits)) // the last of the series
	series, closed := expectedCollisions(n, bits), expectedCollisions(n+1, bits)
	if step := float64(n) / math.Ldexp(1, bits); !near(closed-series, step, 1e-3) {
		t.Errorf("from %d to %d keys: %g to %g, want %g more", n, n+1, series, closed, step)
	}
}

func TestCollisionsOfControls(t *testing.T) {
	c := numbers(200_000)
	rows := measureCollisions(context.Background(), c, subjectsNamed(t, "ideal", "xxh3", "HighwayHash", "Murmur3"))
	if len(rows) != 4*3 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		if r.Corpus != c.Name || r.Keys != len(c.Keys) || r.Distinct+r.Collisions != r.Keys {
			t.Errorf("%+v", r)
		}
		// Collisions this rare are nearly Poisson's: four standard deviations.
		if off := math.Abs(float64(r.Collisions) - r.Expected); off > 4*math.Sqrt(r.Expected)+1e-3 {
			t.Errorf("%s modulo 2^%d: %d collisions, want about %.1f", r.Name, r.Bits, r.Collisions, r.Expected)
		}
	}
}

func TestCollisionsOfBadHash(t *testing.T) {
	rows := measureCollisions(context.Background(), numbers(1000), badHash(func(key []byte) uint64 { return uint64(key[7]) << 28 & (1<<32 - 1) }))
	narrow := row(t, rows, func(r Collision) bool { return r.Bits == 28 })
	whole := row(t, rows, func(r Collision) bool { return r.Bits == 32 })
	if narrow.Distinct != 1 || whole.Distinct != 10 || len(rows) != 2 {
		t.Errorf("%+v", rows)
	}
}

// PJW and ELF have the same values, and 28 bits; BP modulo 2^28 sees four bytes,
// and so a single value of all names under .com.
func TestCollisionsOfClassics(t *testing.T) {
	names := measureCollisions(context.Background(), comNames(10_000), subjectsNamed(t, "BP"))
	if r := row(t, names, func(r Collision) bool { return r.Bits == 28 }); r.Distinct != 1 {
		t.Errorf("BP has %d values over names under .com", r.Distinct)
	}
	list := measureCollisions(context.Background(), &Corpus{Name: "list", Keys: disposable.Domains()}, subjectsNamed(t, "PJW", "ELF", "BP"))
	pjw := row(t, list, func(r Collision) bool { return r.Name == "PJW" })
	elf := row(t, list, func(r Collision) bool { return r.Name == "ELF" })
	if pjw.Bits != 28 || pjw.Distinct != elf.Distinct {
		t.Errorf("PJW %+v, ELF %+v", pjw, elf)
	}
	bp := row(t, list, func(r Collision) bool { return r.Name == "BP" && r.Bits == 28 })
	if float64(bp.Collisions) < 0.9*float64(bp.Keys) {
		t.Errorf("BP modulo 2^28 has %d different values for %d domains", bp.Distinct, bp.Keys)
	}
}

// FuzzCountDistinct counts in maps what the sorted values say.
func FuzzCountDistinct(f *testing.F) {
	f.Add([]byte(""), uint8(28))
	f.Add([]byte("aaaaaaaabbbbbbbbaaaaaaaa"), uint8(64))
	f.Add([]byte("aaaaaaaabaaaaaaaaaaaaaab"), uint8(8))
	f.Fuzz(func(t *testing.T, data []byte, bits uint8) {
		widths := []int{1, int(bits)%64 + 1, 64}
		var values []uint64
		different := []map[uint64]bool{{}, {}, {}}
		for ; len(data) >= 8; data = data[8:] {
			v := binary.LittleEndian.Uint64(data)
			values = append(values, v)
			for w, width := range widths {
				different[w][v<<(64-width)] = true
			}
		}
		for w, got := range countDistinct(values, widths) {
			if got != len(different[w]) {
				t.Errorf("%d bits: %d, want %d", widths[w], got, len(different[w]))
			}
		}
	})
}
