package bloom

import (
	"math"
	"testing"
)

// close9 reports whether got is want within nine digits.
func close9(got, want float64) bool { return math.Abs(got-want) <= 1e-9*math.Abs(want) }

// TestKnownAnswers are figures of the literature, or worked out by hand.
func TestKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		what            string
		got, want, slip float64
	}{
		{"k = 10, m/n = 20", FPR(20_000, 10, 1000), 0.0000889, 0.00000005},
		{"k = 7, m/n = 10", FPR(10_000, 7, 1000), 0.00819, 0.000005},
		{"10^9 entries at 0.01%, in GiB", OptimalBits(1e9, 1e-4) / 8 / (1 << 30), 2.23, 0.005},
		{"a million entries at 1%, in bits", math.Ceil(OptimalBits(1e6, 0.01)), 9_585_059, 0},
		{"best k at m/n = 20", OptimalHashes(20, 1), 13.863, 0.0005},
		{"2^28 bits at k = 11, in millions", Capacity(1<<28, 11) / 1e6, 16.9, 0.05},
		{"10^9 entries at 0.01% in any filter, in GiB", leastBits(1e9, 1e-4) / 8 / (1 << 30), 1.547, 0.0005},
		{"a bound by hand: (1 - e^(-1.5))^1", FPRBound(2, 1, 1), 0.7768698, 1e-7},
		{"no bound for one bit", FPRBound(1, 3, 5), 1, 0},
	} {
		if math.Abs(c.got-c.want) > c.slip {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
}

// TestOptimum wants 2^-k where k is the best choice, and the same from all three
// formulas that are the same equation.
func TestOptimum(t *testing.T) {
	const m = 1 << 40
	for k := 1; k <= MaxPlanHashes; k++ {
		n, p := Capacity(m, k), math.Pow(2, -float64(k))
		if got := FPR(m, k, n); !close9(got, p) {
			t.Errorf("k %d: rate %v, want 2^-k = %v", k, got, p)
		}
		if p < MinPlanFPR {
			continue
		}
		if got := OptimalBits(n, p); !close9(got, m) {
			t.Errorf("k %d: OptimalBits %v, want %v", k, got, float64(m))
		}
		if got := OptimalHashes(m, n); !close9(got, float64(k)) {
			t.Errorf("k %d: OptimalHashes %v", k, got)
		}
		if got := BitsFor(n, p, k); !close9(got, m) {
			t.Errorf("k %d: BitsFor %v, want %v", k, got, float64(m))
		}
		if got := EntriesFor(m, p, k); !close9(got, n) {
			t.Errorf("k %d: EntriesFor %v, want %v", k, got, n)
		}
	}
}

// TestBestHashes compares with trying every k.
func TestBestHashes(t *testing.T) {
	for _, perEntry := range []float64{0.1, 1, 1.4, 2, 3.3, 5, 8, 9.585, 13, 20, 24, 100, 1000} {
		const n = 1 << 20
		m := math.Round(perEntry * n)
		best := 1
		for k := 2; k <= 800; k++ {
			if logFPR(m, k, n) < logFPR(m, best, n) {
				best = k
			}
		}
		if got := BestHashes(m, n); got != best {
			t.Errorf("m/n %v: best k %d, want %d", perEntry, got, best)
		}
	}
	if got := BestHashes(MaxPlan, 1); got != MaxPlanHashes {
		t.Errorf("2^53 bits for one entry: k %d, want the limit", got)
	}
}

// TestLogClear wants all digits at both ends, from series that need no
// logarithm of a difference.
func TestLogClear(t *testing.T) {
	if got := logClear(1e-300, 1); !close9(got, -1e-300) {
		t.Errorf("ln(1 - 1e-300) = %v, want -1e-300", got)
	}
	// 1 - (1-x) for x = 2^-50, which 1-p loses no digit of.
	if got, want := logClear(1-0x1p-50, 1), -50*math.Ln2; !close9(got, want) {
		t.Errorf("ln(2^-50) = %v, want %v", got, want)
	}
	// p^(1/1000) = 1 - 6.9e-4…: -ln p/1000 - (ln p/1000)²/2 + (…)³/6
	x := math.Ln2 / 1000
	if got, want := logClear(0.5, 1000), math.Log(x-x*x/2+x*x*x/6-x*x*x*x/24); !close9(got, want) {
		t.Errorf("ln(1 - 0.5^(1/1000)) = %v, want %v", got, want)
	}
}

func TestFPRBoundIsAbove(t *testing.T) {
	for _, m := range []uint64{2, 3, 10, 1000, 1 << 28, 1 << 40} {
		for k := 1; k < 20; k++ {
			for _, n := range []float64{1, 2, 10, 1e3, 1e6} {
				rate, bound := FPR(m, k, n), FPRBound(m, k, n)
				if !(bound >= rate && bound <= 1) {
					t.Errorf("m %d, k %d, n %v: the bound %v is not between the rate %v and 1", m, k, n, bound, rate)
				}
			}
		}
	}
}

// leastBits returns the bound of [Plan.LeastBits] for any n and p.
func leastBits(n, p float64) float64 { return -n * math.Log2(p) }
