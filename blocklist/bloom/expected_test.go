package bloom

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"spamgate/hashfamily"
)

// TestExpectedFPR measures small filters, for sizes with many divisors and without,
// and wants the rate of the fill ratio. "double:plain" is much worse.
func TestExpectedFPR(t *testing.T) {
	const filters, asked = 20, 50_000
	for _, c := range []struct {
		name        string
		m           uint64
		k, n        int
		least, most float64 // what is measured, as a multiple of ExpectedFPR
	}{
		{"double", 1918, 13, 100, 0.7, 1.4},         // 2 · 7 · 137
		{"double", 1931, 13, 100, 0.7, 1.4},         // a prime
		{"double:murmur3", 1920, 13, 100, 0.7, 1.4}, // 2⁷ · 3 · 5
		{"double:plain", 1918, 13, 100, 4, 10},
		{"seeded", 2000, 10, 100, 0.7, 1.4},
		{"seeded", 1024, 10, 70, 0.7, 1.4},
		{"double", 2048, 13, 100, 0.7, 1.4},
		{"double:plain", 2048, 13, 100, 4, 10},
		{"double", 1 << 16, 7, 6500, 0.9, 1.1},
		{"digest", 2000, 10, 100, 0.7, 1.4},
	} {
		spec, err := hashfamily.ParseSpec(c.name)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(c.m, uint64(c.n)))
		wrong, expected := 0, 0.0
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
			expected += f.ExpectedFPR(float64(c.n)) / filters
			for range asked {
				if f.MayContain(draw()) {
					wrong++
				}
			}
		}
		rate := float64(wrong) / (filters * asked)
		t.Logf("%s, m=%d, k=%d, n=%d: measured %.3g (%d), expected %.3g", c.name, c.m, c.k, c.n, rate, wrong, expected)
		if rate < expected*c.least || rate > expected*c.most {
			t.Errorf("%s, m=%d: %.3g were measured, and ExpectedFPR is %.3g: want %v to %v times that", c.name, c.m, rate, expected, c.least, c.most)
		}
	}
}

// Few classic hashes have no rate that could be computed.
func TestExpectedFPRUnpredictable(t *testing.T) {
	for names, want := range map[string]bool{"BP": false, "RS,JS": false, "PJW,ELF,RS": false, "RS,JS,AP": true, "BP,RS,JS,AP": true} {
		family, err := hashfamily.NewClassic(1<<16, strings.Split(names, ",")...)
		if err != nil {
			t.Fatal(err)
		}
		f, err := New(family)
		if err != nil {
			t.Fatal(err)
		}
		f.Add([]byte("example.com"))
		_, computed := f.Expect(1)
		if got := f.ExpectedFPR(1); math.IsNaN(got) == want || math.IsNaN(computed) == want {
			t.Errorf("%s: ExpectedFPR %v, Expect %v; want a number: %t", names, got, computed, want)
		}
	}
}

// The rate of a classic family does not fall with the fill ratio if keys are alike.
func TestExpectedFPRByEntries(t *testing.T) {
	f := newClassic(t, 1<<16)
	for i := range 2000 {
		f.Add(fmt.Appendf(nil, "user%08d@example.com", i))
	}
	if _, byEntries := f.Expect(2000); f.ExpectedFPR(2000) != byEntries || math.Pow(f.FillRatio(), 9) > byEntries/2 {
		t.Errorf("ExpectedFPR is %v, by the entries %v, fill^9 %v", f.ExpectedFPR(2000), byEntries, math.Pow(f.FillRatio(), 9))
	}
}
