package bloom

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestRate(t *testing.T) {
	for _, c := range []struct {
		m    uint64
		k    int
		n    float64
		want float64
	}{
		{1, 1, 1, 1},
		{2, 1, 1, 0.5},
		{2, 2, 1, 0.625},                 // one bit set: 1/2 · 1/4; two: 1/2 · 1
		{10, 1, 3, 1 - math.Pow(0.9, 3)}, // the share of set bits
		{3, 2, 1, (1./3)*(1./9) + (2./3)*(4./9)},
		{100, 1, 0, 0},
		{1 << 40, 2, 1e9, FPRBound(1<<40, 2, 1e9)},
	} {
		if got := Rate(c.m, c.k, c.n); math.Abs(got-c.want) > 1e-12*c.want {
			t.Errorf("Rate(%d, %d, %v) = %v, want %v", c.m, c.k, c.n, got, c.want)
		}
	}
}

// The exact rate is that of thousands of small filters of random draws, not below the
// textbook's and not above the bound.
func TestRateAgainstDraws(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ m, k, n int }{{32, 3, 5}, {96, 7, 10}, {20, 5, 10}, {64, 1, 30}} {
		const filters = 40_000
		sum, squares := 0.0, 0.0
		for range filters {
			set := make([]bool, c.m)
			bits := 0
			for range c.k * c.n {
				if i := r.IntN(c.m); !set[i] {
					set[i] = true
					bits++
				}
			}
			rate := math.Pow(float64(bits)/float64(c.m), float64(c.k))
			sum += rate
			squares += rate * rate
		}
		mean := sum / filters
		err := math.Sqrt((squares/filters - mean*mean) / filters)
		m, n := uint64(c.m), float64(c.n)
		got := Rate(m, c.k, n)
		if math.Abs(got-mean) > 4*err {
			t.Errorf("%+v: %v, and %v ± %v by drawing", c, got, mean, err)
		}
		if got < FPR(m, c.k, n)*(1-1e-12) || got > FPRBound(m, c.k, n)*(1+1e-12) {
			t.Errorf("%+v: %v is not between the textbook's %v and the bound %v", c, got, FPR(m, c.k, n), FPRBound(m, c.k, n))
		}
	}
}

// A plan has the rate that was asked for or a lower one, exactly, and no bit or entry
// could be saved.
func TestPlanOfFewEntries(t *testing.T) {
	for n := uint64(1); n <= 18; n = n*5/4 + 1 {
		for _, p := range []float64{0.5, 0.1, 0.01, 1e-3, 1e-6} {
			plan, err := NewPlan(PlanRequest{Entries: n, FPR: p})
			if err != nil {
				t.Fatal(err)
			}
			if rate := Rate(plan.Bits, plan.Hashes, float64(n)); rate > p || plan.Rate() != rate {
				t.Errorf("%d entries at %v: %+v has the rate %v", n, p, plan, rate)
			}
			if plan.Bits > 1 && Rate(plan.Bits-1, plan.Hashes, float64(n)) <= p {
				t.Errorf("%d entries at %v: %+v, and a bit less would do", n, p, plan)
			}
			held, err := NewPlan(PlanRequest{Bits: plan.Bits, FPR: p, Hashes: plan.Hashes})
			if err != nil || held.Entries < n || held.Rate() > p || Rate(held.Bits, held.Hashes, float64(held.Entries+1)) <= p {
				t.Errorf("%d bits at %v: %+v, %v", plan.Bits, p, held, err)
			}
		}
	}
}
