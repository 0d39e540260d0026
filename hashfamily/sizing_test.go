package hashfamily

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// formula is the textbook's rate of false positives.
func formula(bitsPerKey, k int) float64 {
	return math.Pow(1-math.Exp(-float64(k)/float64(bitsPerKey)), float64(k))
}

// TestSizingTable holds known answers; those from 2 to 16 bits a key stand in the
// tables that Pei Cao's page "Bloom Filters - the math" adds to "Summary Cache"
// (Fan, Cao, Almeida and Broder, 1998).
func TestSizingTable(t *testing.T) {
	for _, c := range []struct {
		bitsPerKey, k int
		rate, within  float64
	}{
		{2, 1, 0.393, 0.0005},
		{8, 6, 0.0216, 0.00005},
		{10, 7, 0.00819, 0.000005},
		{16, 11, 0.000459, 0.0000005},
		{20, 10, 0.0000889, 0.00000005},
	} {
		if got := seededRate(c.bitsPerKey, c.k); math.Abs(got-c.rate) > c.within {
			t.Errorf("%d bits a key, %d hashes: %v, want %v", c.bitsPerKey, c.k, got, c.rate)
		}
	}
}

func TestSeededSize(t *testing.T) {
	for _, c := range []struct {
		fpr           float64
		bitsPerKey, k int
	}{
		{0.999, 1, 1},
		{0.5, 2, 1},
		{0.1, 5, 3},
		{0.01, 10, 5},
		{0.001, 15, 8},
		{0.0001, 20, 10},
		{0.000089, 20, 10},
	} {
		bitsPerKey, k, err := SeededSize(c.fpr)
		if err != nil || bitsPerKey != c.bitsPerKey || k != c.k {
			t.Errorf("%v: %d bits a key, %d hashes, %v; want %d, %d", c.fpr, bitsPerKey, k, err, c.bitsPerKey, c.k)
		}
	}
}

// TestSeededSizeByBruteForce holds that the size reaches the rate, that no smaller
// number of bits does with any number of hashes, and none fewer hashes with these
// bits; and that a smaller rate never needs less.
func TestSeededSizeByBruteForce(t *testing.T) {
	const slack = 1e-12 // relative: the two ways to compute the formula round differently
	r := rand.New(rand.NewPCG(15, 16))
	lastBits, lastK := 0, 0
	for fpr := 0.9999; fpr > 0.00007; fpr *= 1 - r.Float64()/100 {
		bitsPerKey, k, err := SeededSize(fpr)
		if err != nil {
			t.Fatal(err)
		}
		if rate := formula(bitsPerKey, k); rate > fpr*(1+slack) {
			t.Errorf("%v: %d bits a key and %d hashes have %v", fpr, bitsPerKey, k, rate)
		}
		for b := 1; b <= bitsPerKey; b++ {
			for h := 1; h <= MaxSeededK && (b < bitsPerKey || h < k); h++ {
				if rate := formula(b, h); rate < fpr*(1-slack) {
					t.Errorf("%v: took %d bits a key and %d hashes, but %d and %d have %v", fpr, bitsPerKey, k, b, h, rate)
				}
			}
		}
		if bitsPerKey < lastBits || bitsPerKey == lastBits && k < lastK {
			t.Errorf("%v: %d bits a key and %d hashes, for a larger rate %d and %d", fpr, bitsPerKey, k, lastBits, lastK)
		}
		lastBits, lastK = bitsPerKey, k
	}
}

func TestSeededSizeRefuses(t *testing.T) {
	for _, c := range []struct {
		fpr  float64
		says string
	}{
		{0, "between 0 and 1"},
		{1, "between 0 and 1"},
		{-0.1, "between 0 and 1"},
		{2, "between 0 and 1"},
		{math.NaN(), "between 0 and 1"},
		{math.Inf(1), "between 0 and 1"},
		{0.00001, "e-05, at 20 bits a key and 14 hashes: use that or more"},
		{math.SmallestNonzeroFloat64, "20 bits a key and 14 hashes"},
	} {
		if bitsPerKey, k, err := SeededSize(c.fpr); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %d, %d, %v; want an error that says %s", c.fpr, bitsPerKey, k, err, c.says)
		}
	}
}

// TestSeededSizeNamesTheLeast holds that the rate which the error names is one
// that can be had, and that it is the least.
func TestSeededSizeNamesTheLeast(t *testing.T) {
	least := 1.0
	for bitsPerKey := 1; bitsPerKey <= maxBitsPerKey; bitsPerKey++ {
		for k := 1; k <= MaxSeededK; k++ {
			least = min(least, formula(bitsPerKey, k))
		}
	}
	_, _, err := SeededSize(least / 2)
	if err == nil {
		t.Fatalf("%v was taken", least/2)
	}
	_, after, _ := strings.Cut(err.Error(), "the lowest of the seeded family is ")
	word, _, _ := strings.Cut(after, ",")
	named, parseErr := strconv.ParseFloat(word, 64)
	if parseErr != nil || math.Abs(named-least) > least*1e-12 {
		t.Fatalf("%q names %q, want %v", err, word, least)
	}
	if bitsPerKey, k, err := SeededSize(named); err != nil || bitsPerKey != 20 || k != 14 {
		t.Errorf("%v: %d, %d, %v; want 20, 14", named, bitsPerKey, k, err)
	}
}
