package bloom

import (
	"math/rand/v2"
	"testing"
)

// TestCounters compares packed counters with a slice of numbers.
func TestCounters(t *testing.T) {
	for _, width := range []int{4, 8, 16} {
		for _, m := range []uint64{1, 2, 3, 33} {
			c := newCounters(m, width)
			if want := (int(m)*width + 7) / 8; len(c.packed) != want {
				t.Errorf("%d counters of %d bits take %d bytes, want %d", m, width, len(c.packed), want)
			}
			r := rand.New(rand.NewPCG(m, uint64(width)))
			want := make([]uint16, m)
			for range 500 {
				i, n := r.Uint64N(m), uint16(r.IntN(int(c.most)+1))
				c.put(i, n)
				want[i] = n
				for i, n := range want {
					if got := c.at(uint64(i)); got != n {
						t.Fatalf("counter %d of %d, %d bits: %d, want %d", i, m, width, got, n)
					}
				}
			}
		}
	}
}
