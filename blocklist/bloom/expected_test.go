package bloom

import (
	"math/rand/v2"
	"testing"

	"spamgate/hashfamily"
)

// TestExpectedFPROfDouble measures small filters, in which double hashing is worse
// than its formula: with and without a power of two, and with divisors and without.
func TestExpectedFPROfDouble(t *testing.T) {
	const filters, asked = 20, 50_000
	for _, c := range []struct {
		name  string
		m     uint64
		k, n  int
		worse float64 // than FPR says, at least
	}{
		{"double", 1918, 13, 100, 5},         // 2 · 7 · 137
		{"double", 1931, 13, 100, 3},         // a prime
		{"double:murmur3", 1920, 13, 100, 5}, // 2⁷ · 3 · 5
		{"seeded", 2000, 10, 100, 3},
		{"seeded", 1024, 10, 70, 1.5},
		{"double", 2048, 13, 100, 2},
		{"double", 1 << 16, 7, 6500, 0.9}, // large enough
	} {
		spec, err := hashfamily.ParseSpec(c.name)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(c.m, uint64(c.n)))
		wrong, expected, byFill := 0, 0.0, 0.0
		for range filters {
			secret := make([]byte, hashfamily.KeySize)
			for i := range secret {
				secret[i] = byte(r.Uint32())
			}
			family, err := spec.New(hashfamily.Params{M: c.m, K: c.k, Key: secret})
			if err != nil {
				t.Fatal(err)
			}
			f, err := New(family)
			if err != nil {
				t.Fatal(err)
			}
			key := make([]byte, 16)
			draw := func() []byte {
				for i := range key {
					key[i] = byte(r.Uint32())
				}
				return key
			}
			for range c.n {
				f.Add(draw())
			}
			expected += f.ExpectedFPR() / filters
			byFill += f.FPR() / filters
			for range asked {
				if f.MayContain(draw()) {
					wrong++
				}
			}
		}
		rate := float64(wrong) / (filters * asked)
		t.Logf("%s, m=%d, k=%d, n=%d: measured %.3g (%d), expected %.3g, by fill alone %.3g", c.name, c.m, c.k, c.n, rate, wrong, expected, byFill)
		if expected < rate*0.75 || expected > rate*1.25 {
			t.Errorf("%s, m=%d: ExpectedFPR is %.3g, and %.3g were measured", c.name, c.m, expected, rate)
		}
		if rate < byFill*c.worse {
			t.Errorf("%s, m=%d: %.3g were measured, %.3g is fill^k: want %v times that", c.name, c.m, rate, byFill, c.worse)
		}
	}
}

func TestCoprimes(t *testing.T) {
	for d, want := range []int{0, 1, 1, 2, 2, 4, 2, 6, 4, 6, 4, 10, 4} {
		if got := coprimes(uint64(d)); got != want {
			t.Errorf("coprimes(%d) = %d, want %d", d, got, want)
		}
	}
}
