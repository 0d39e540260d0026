package hashfamily

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// plainDigest is the digest family written with big integers.
func plainDigest(key []byte, m uint64, k int) []uint64 {
	input, left, divisor := slices.Clone(key), new(big.Int), new(big.Int).SetUint64(m)
	var indices []uint64
	for range k {
		if left.Cmp(divisor) < 0 {
			input = append(input, '.')
			sum := md5.Sum(input)
			left.SetBytes(sum[:])
		}
		rest := new(big.Int)
		left.DivMod(left, divisor, rest)
		indices = append(indices, rest.Uint64())
	}
	return indices
}

func TestDivideKnownAnswer(t *testing.T) {
	left := wide{0, 654321}
	for _, want := range []uint64{1, 15, 11} {
		var got uint64
		if left, got = left.divide(16); got != want {
			t.Fatalf("654321 divided by 16 again and again: %d, want 1, 15, 11", got)
		}
	}
	if want := (wide{0, 654321 / (16 * 16 * 16)}); left != want {
		t.Errorf("%d is left, want %d", left, want)
	}
}

// checkDivide compares the division with that of big integers.
func checkDivide(tb testing.TB, w wide, m uint64) {
	tb.Helper()
	var number [16]byte
	binary.BigEndian.PutUint64(number[:8], w.high)
	binary.BigEndian.PutUint64(number[8:], w.low)
	plain, divisor := new(big.Int).SetBytes(number[:]), new(big.Int).SetUint64(m)
	if below := plain.Cmp(divisor) < 0; w.below(m) != below {
		tb.Errorf("%d below %d: %t, want %t", plain, m, w.below(m), below)
	}
	wantRest := new(big.Int)
	plain.DivMod(plain, divisor, wantRest)
	quotient, rest := w.divide(m)
	if want := plain.FillBytes(number[:]); rest != wantRest.Uint64() ||
		quotient.high != binary.BigEndian.Uint64(want[:8]) || quotient.low != binary.BigEndian.Uint64(want[8:]) {
		tb.Errorf("%x/%x: %x, rest %x; want %x, rest %x", w, m, quotient, rest, plain, wantRest)
	}
}

func TestDivide(t *testing.T) {
	edges := []uint64{0, 1, 2, 16, 1<<32 - 1, 1 << 32, 1<<40 + 1, 1<<63 - 1, 1 << 63, 1<<64 - 1}
	for _, high := range edges {
		for _, low := range edges {
			for _, m := range edges[1:] {
				checkDivide(t, wide{high, low}, m)
			}
		}
	}
	r := rand.New(rand.NewPCG(7, 8))
	for range 20_000 {
		// Of any length in bits, the short ones as often as the long.
		checkDivide(t, wide{r.Uint64() >> r.UintN(64), r.Uint64()}, max(1, r.Uint64()>>r.UintN(64)))
	}
}

func FuzzDivide(f *testing.F) {
	f.Add(uint64(0), uint64(654321), uint64(16))
	f.Add(^uint64(0), ^uint64(0), uint64(1))
	f.Add(^uint64(0), ^uint64(0), ^uint64(0))
	f.Add(uint64(1), uint64(0), uint64(1)<<63)
	f.Fuzz(func(t *testing.T, high, low, m uint64) {
		checkDivide(t, wide{high, low}, max(1, m))
	})
}

func TestDigestAgainstBigIntegers(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 2_000 {
		m := max(1, r.Uint64()>>r.UintN(64)>>1)
		k := 1 + r.IntN(MaxDigestK)
		key := randomBytes(r, r.IntN(400))
		family, err := NewDigest(m, k)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, family, key, plainDigest(key, m, k))
	}
}

// TestDigestOfOneBit holds that it ends where the number left is never divided.
func TestDigestOfOneBit(t *testing.T) {
	family, err := NewDigest(1, MaxDigestK)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, family, []byte("spam@example.com"), make([]uint64, MaxDigestK))
}

// TestDigestIsUneven holds the worst case that the type's comment tells, and that
// it doesn't befall a power of two nearby. The number left for the fifth index is
// even over 0 to 1.5·m. A third of the keys have one from m on, and so an index
// below m/2; the others read the next digest, and half of them have one.
func TestDigestIsUneven(t *testing.T) {
	const keys = 20_000
	for _, c := range []struct {
		m        uint64
		from, to int
	}{
		{46_897_494, keys * 65 / 100, keys * 68 / 100},
		{1 << 25, keys * 48 / 100, keys * 52 / 100},
	} {
		family, err := NewDigest(c.m, 5)
		if err != nil {
			t.Fatal(err)
		}
		low := 0
		for i := range keys {
			if family.Index(4, fmt.Appendf(nil, "user%d@example.com", i)) < c.m/2 {
				low++
			}
		}
		if low < c.from || low > c.to {
			t.Errorf("m=%d: the fifth index of %d of %d keys is in the lower half, want %d to %d", c.m, low, keys, c.from, c.to)
		}
	}
}

// TestDigestOfADot holds that a dot at the end of a key is no other than the one
// that is added.
func TestDigestOfADot(t *testing.T) {
	family, err := NewDigest(1<<28, 11)
	if err != nil {
		t.Fatal(err)
	}
	key := []byte("example.com")
	a, b := family.AppendIndices(nil, key), family.AppendIndices(nil, append(key, '.'))
	if !slices.Equal(a[4:], b[:7]) {
		t.Errorf("indices %d, with a dot %d: the last seven are not the first", a, b)
	}
}

// TestDigestTakesLongKeys holds that a key beyond the room for it is hashed whole.
func TestDigestTakesLongKeys(t *testing.T) {
	for _, length := range []int{digestKeyRoom - 1, digestKeyRoom, digestKeyRoom + 1, digestKeyRoom + MaxDigestK + 1, 10_000} {
		for _, m := range []uint64{1000, MaxDigestBits} {
			key := []byte(strings.Repeat("a", length))
			family, err := NewDigest(m, MaxDigestK)
			if err != nil {
				t.Fatal(err)
			}
			expect(t, family, key, plainDigest(key, m, MaxDigestK))
		}
	}
}

// BenchmarkDigest compares the division by machine words with big integers.
func BenchmarkDigest(b *testing.B) {
	for _, m := range []uint64{1 << 28, 1_000_003} {
		family, err := NewDigest(m, 7)
		if err != nil {
			b.Fatal(err)
		}
		room := make([]uint64, 0, family.K())
		b.Run(fmt.Sprintf("%d/words", m), func(b *testing.B) {
			for b.Loop() {
				family.AppendIndices(room, benchKey)
			}
		})
		b.Run(fmt.Sprintf("%d/big", m), func(b *testing.B) {
			for b.Loop() {
				plainDigest(benchKey, m, 7)
			}
		})
	}
}
