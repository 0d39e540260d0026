package bloom

import (
	"math"
	"testing"

	"spamgate/internal/disposable"
)

// near reports whether got is want within one part in a thousand.
func near(got, want float64) bool { return math.Abs(got-want) <= math.Abs(want)/1000 }

func TestFPRByFormula(t *testing.T) {
	for _, c := range []struct {
		m    uint64
		k    int
		n    float64
		want float64
	}{
		{ClassicBits, 11, 0, 0},
		{ClassicBits, 11, 1, 5.4712e-82}, // (11/2^28)^11: no digits lost to 1 - e^-x
		{ClassicBits, 11, 121_570, 4.5633e-26},
		{ClassicBits, 11, 10_000_000, 6.2036e-6},
		{ClassicBits, 11, Capacity(ClassicBits, 11), math.Pow(2, -11)},
		{1000, 1, 1e9, 1},
		{10, 7, 1, 0.0081937},
	} {
		if got := FPR(c.m, c.k, c.n); !near(got, c.want) {
			t.Errorf("FPR(%d, %d, %v) = %v, want %v", c.m, c.k, c.n, got, c.want)
		}
	}
}

func TestCapacity(t *testing.T) {
	if got := Capacity(ClassicBits, 11); !near(got, 16.915e6) {
		t.Errorf("Capacity(2^28, 11) = %v, want 16.9 million", got)
	}
	if got := Capacity(1000, 1); !near(got, 693.147) {
		t.Errorf("Capacity(1000, 1) = %v, want 693", got)
	}
}

// TestActsLikeNine holds what the package comment says about the classic
// family, in a filter that is small enough for false positives to be counted.
func TestActsLikeNine(t *testing.T) {
	f := listFilter(t, 1<<21)
	keys := absentKeys(t, 100_000)
	wrong := 0
	for _, key := range keys {
		if f.MayContain(key) {
			wrong++
		}
	}
	measured := float64(wrong) / float64(len(keys))
	t.Logf("fill %.4f: measured %.2e, fill^11 %.2e, fill^9 %.2e", f.FillRatio(), measured, f.FPR(), f.ExpectedFPR(121_570))
	if got := f.ExpectedFPR(121_570); got < measured/2 || got > measured*2 {
		t.Errorf("ExpectedFPR %.2e is not near the measured %.2e", got, measured)
	}
	if measured < 3*f.FPR() {
		t.Errorf("FPR %.2e is no clear lower bound of the measured %.2e: the package comment is wrong", f.FPR(), measured)
	}
}

func TestEstimatedEntries(t *testing.T) {
	// Independent functions: the formula holds.
	f, err := New(strided{k: 4, m: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range disposable.Domains() {
		f.Add(key)
	}
	if got := f.EstimatedEntries(); math.Abs(got-121570) > 1215 {
		t.Errorf("strided family: estimate %.0f, want 121570 within 1%%", got)
	}

	// The classic family: as documented.
	if got := listFilter(t, ClassicBits).EstimatedEntries(); math.Round(got) != 121_524 {
		t.Errorf("classic family: estimate %.1f, want the documented 121,524", got)
	}
}

// TestDistinctIndices counts the bits that each hash sets for the list's 121,570
// different keys: random functions would set all but about 27.
func TestDistinctIndices(t *testing.T) {
	want := []int{121544, 121537, 121427, 121427, 121547, 121540, 121547, 119756, 1476, 121541, 121544}
	f := newClassic(t, ClassicBits)
	for i := range f.K() {
		seen := make(map[uint64]bool)
		for _, key := range disposable.Domains() {
			seen[f.family.Index(i, key)] = true
		}
		if len(seen) != want[i] {
			t.Errorf("%s sets %d bits, want %d", f.classic.HashName(i), len(seen), want[i])
		}
	}
}
