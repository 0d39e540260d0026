package hashlab

import (
	"math"
	"testing"
)

// near reports whether got is want but for a part of tolerance.
func near(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*math.Abs(want)
}

// The first rows are what R's binom.test prints, to the digits that it prints.
// The rows of few hits in very many trials are Garwood's limits of a Poisson
// count (F. Garwood, Biometrika 28, 1936): 5 hits, 1.623 to 11.668.
func TestClopperPearson(t *testing.T) {
	for _, tt := range []struct {
		hits, trials uint64
		low, high    float64
		tolerance    float64
	}{
		{1, 10, 0.002528579, 0.445016117, 1e-6},
		{5, 10, 0.187086028, 0.812913972, 1e-6},
		{10, 100, 0.04900469, 0.17622260, 1e-6},
		{5, 1_000_000_000, 1.623e-9, 11.668e-9, 5e-4},
		{1, 4_000_000_000, 0.0253 / 4e9, 5.5716 / 4e9, 1e-3},
		{0, 100, 0, 0.029513, 1e-4}, // 1 - 0.05^0.01
		{0, 1_000_000_000, 0, 2.995732e-9, 1e-6},
		{100, 100, 0.970487, 1, 1e-6}, // 0.05^0.01
		{0, 0, 0, 1, 0},
	} {
		low, high := clopperPearson(tt.hits, tt.trials)
		if !near(low, tt.low, tt.tolerance) || !near(high, tt.high, tt.tolerance) {
			t.Errorf("%d of %d: %g to %g, want %g to %g", tt.hits, tt.trials, low, high, tt.low, tt.high)
		}
	}
}

// The limits of h hits in n trials hold h/n, narrow as n grows, and mirror those
// of n-h hits.
func TestClopperPearsonMirrors(t *testing.T) {
	for _, n := range []uint64{1, 2, 7, 100, 12345} {
		for h := uint64(0); h <= n; h += 1 + n/10 {
			low, high := clopperPearson(h, n)
			otherLow, otherHigh := clopperPearson(n-h, n)
			rate := float64(h) / float64(n)
			if low > rate || high < rate || math.Abs(low-(1-otherHigh)) > 1e-9 || math.Abs(high-(1-otherLow)) > 1e-9 {
				t.Errorf("%d of %d: %g to %g; mirrored %g to %g", h, n, low, high, otherLow, otherHigh)
			}
			moreLow, moreHigh := clopperPearson(10*h, 10*n)
			if moreHigh-moreLow >= high-low {
				t.Errorf("%d of %d is no wider than ten times as many", h, n)
			}
		}
	}
}

// Holm's steps by hand: 0.005·4, 0.01·3, 0.03·2, 0.04·1; the last comes out below
// the one before, and is raised to it.
func TestHolm(t *testing.T) {
	for _, tt := range []struct{ p, want []float64 }{
		{[]float64{0.01, 0.04, 0.03, 0.005}, []float64{0.03, 0.06, 0.06, 0.02}},
		{[]float64{0.5, 0.9, 0.4}, []float64{1, 1, 1}},
		{[]float64{0.02}, []float64{0.02}},
		{[]float64{0, 0, 1}, []float64{0, 0, 1}},
		{nil, nil},
	} {
		got := holm(tt.p)
		if len(got) != len(tt.want) {
			t.Fatalf("%v: %v", tt.p, got)
		}
		for i := range got {
			if !near(got[i], tt.want[i], 1e-12) {
				t.Errorf("%v: %v, want %v", tt.p, got, tt.want)
			}
		}
	}
}

// The critical values are from the NIST/SEMATECH e-Handbook of Statistical
// Methods, 1.3.6.7.4.
func TestChiSquareTable(t *testing.T) {
	for _, tt := range []struct {
		df int
		x2 float64
		p  float64
	}{
		{1, 3.841, 0.05}, {1, 6.635, 0.01}, {1, 10.828, 0.001},
		{10, 18.307, 0.05}, {10, 23.209, 0.01}, {10, 29.588, 0.001},
		{100, 124.342, 0.05}, {100, 135.807, 0.01}, {100, 149.449, 0.001},
		{10, 3.940, 0.95}, {100, 77.929, 0.95},
	} {
		if got := chiSquareP(tt.x2, tt.df); !near(got, tt.p, 2e-3) {
			t.Errorf("χ² %g, df %d: p = %g, want %g", tt.x2, tt.df, got, tt.p)
		}
		if got := chiSquareBelow(tt.x2, tt.df); !near(got, 1-tt.p, 2e-3) {
			t.Errorf("χ² %g, df %d: below %g, want %g", tt.x2, tt.df, got, 1-tt.p)
		}
	}
}

// In the tail there are no tables, but closed forms: e^(-x/2) for two degrees of
// freedom, erfc(√(x/2)) for one. For many, Wilson and Hilferty's cube root comes
// near (Proceedings of the National Academy of Sciences 17, 1931).
func TestChiSquareTail(t *testing.T) {
	for _, x2 := range []float64{0.1, 1, 10, 100, 500, 1000, 1400} {
		if got, want := chiSquareP(x2, 2), math.Exp(-x2/2); !near(got, want, 1e-9) {
			t.Errorf("χ² %g, df 2: %g, want %g", x2, got, want)
		}
		if got, want := chiSquareP(x2, 1), math.Erfc(math.Sqrt(x2/2)); !near(got, want, 1e-9) {
			t.Errorf("χ² %g, df 1: %g, want %g", x2, got, want)
		}
		if got, want := chiSquareBelow(x2, 2), -math.Expm1(-x2/2); !near(got, want, 1e-9) {
			t.Errorf("χ² %g, df 2: below %g, want %g", x2, got, want)
		}
	}
	for _, tt := range []struct {
		df int
		x2 float64
	}{{16383, 16383}, {16383, 16700}, {16383, 17500}, {65535, 70000}} {
		df := float64(tt.df)
		z := (math.Cbrt(tt.x2/df) - (1 - 2/(9*df))) / math.Sqrt(2/(9*df))
		if got, want := chiSquareP(tt.x2, tt.df), math.Erfc(z/math.Sqrt2)/2; !near(got, want, 0.1) {
			t.Errorf("χ² %g, df %d: %g, want about %g", tt.x2, tt.df, got, want)
		}
	}
	if p := chiSquareP(1e7, 16383); p != 0 {
		t.Errorf("far beyond: %g", p)
	}
	if p, below := chiSquareP(0, 5), chiSquareBelow(0, 5); p != 1 || below != 0 {
		t.Errorf("χ² 0: %g, below %g", p, below)
	}
}
