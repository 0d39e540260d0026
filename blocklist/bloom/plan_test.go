package bloom

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestNewPlan(t *testing.T) {
	for _, c := range []struct {
		name string
		w    PlanRequest
		want Plan
	}{
		{"n, p", PlanRequest{Entries: 1_000_000, FPR: 0.01}, Plan{1_000_000, 9_592_961, 7}},
		{"n, p above one half", PlanRequest{Entries: 1000, FPR: 0.9}, Plan{1000, 436, 1}},
		{"n, p, k", PlanRequest{Entries: 1000, FPR: 0.5, Hashes: 1}, Plan{1000, 1445, 1}},
		{"m, p", PlanRequest{Bits: ClassicBits, FPR: 1.0 / 2048}, Plan{16_915_024, ClassicBits, 11}},
		{"m, p, k", PlanRequest{Bits: ClassicBits, FPR: 1.0 / 2048, Hashes: 9}, Plan{16_693_829, ClassicBits, 9}},
		{"n, m", PlanRequest{Entries: 1000, Bits: 20_000}, Plan{1000, 20_000, 14}},
		{"n, m, p: fewer functions do", PlanRequest{Entries: 1000, Bits: 20_000, FPR: 1e-4}, Plan{1000, 20_000, 10}},
		{"n, m, k", PlanRequest{Entries: 1000, Bits: 20_000, Hashes: 10}, Plan{1000, 20_000, 10}},
		{"m, k", PlanRequest{Bits: ClassicBits, Hashes: 11}, Plan{16_915_025, ClassicBits, 11}},
		{"n, k", PlanRequest{Entries: 1000, Hashes: 10}, Plan{1000, 14_427, 10}},
		{"one entry in one bit", PlanRequest{Entries: 1, Bits: 1}, Plan{1, 1, 1}},
	} {
		got, err := NewPlan(c.w)
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
}

func TestPlanMeasures(t *testing.T) {
	p, err := NewPlan(PlanRequest{Entries: 1000, Bits: 20_001, Hashes: 10})
	if err != nil {
		t.Fatal(err)
	}
	n, m, k := 1000.0, 20_001.0, 10.0
	fill := 1 - math.Exp(-k*n/m)
	for what, c := range map[string][2]float64{
		"fill":          {p.Fill(), fill},
		"rate":          {FPR(p.Bits, p.Hashes, float64(p.Entries)), math.Pow(fill, k)},
		"bound":         {p.FPRBound(), math.Pow(1-math.Exp(-k*(n+0.5)/(m-1)), k)},
		"bits an entry": {p.BitsPerEntry(), m / n},
		"ideal k":       {p.OptimalHashes(), m / n * math.Ln2},
		"memory":        {float64(p.MemoryBytes()), 2501},
		"least":         {p.LeastBits(), -n * k * math.Log2(fill)},
	} {
		if !close9(c[0], c[1]) {
			t.Errorf("%s: %v, want %v", what, c[0], c[1])
		}
	}
}

func TestNewPlanErrors(t *testing.T) {
	for _, c := range []struct {
		w    PlanRequest
		says []string
	}{
		{PlanRequest{}, []string{"nothing", "two of n, p, m and k"}},
		{PlanRequest{Entries: 5}, []string{"n alone", "add p, m or k"}},
		{PlanRequest{FPR: 0.1}, []string{"p alone", "add n or m"}},
		{PlanRequest{Bits: 5}, []string{"m alone", "add n, p or k"}},
		{PlanRequest{Hashes: 5}, []string{"k alone", "add n or m"}},
		{PlanRequest{FPR: 0.1, Hashes: 5}, []string{"p and k", "add n or m"}},
		{PlanRequest{Entries: 5, FPR: 0.1, Bits: 50, Hashes: 3}, []string{"one too many", "leave out"}},
		{PlanRequest{Entries: 1000, Bits: 5000, FPR: 0.01}, []string{"0.092 at best, with k = 3", "at most 520 entries", "at least 9599 bits"}},
		{PlanRequest{Entries: 5, FPR: 1}, []string{"p 1 ", "1e-300 to below 1"}},
		{PlanRequest{Entries: 5, FPR: -0.1}, []string{"p -0.1", "1e-300 to below 1"}},
		{PlanRequest{Entries: 5, FPR: math.NaN()}, []string{"p NaN", "1e-300 to below 1"}},
		{PlanRequest{Entries: 5, FPR: math.Inf(1)}, []string{"p +Inf"}},
		{PlanRequest{Entries: 5, FPR: 1e-301}, []string{"p 1e-301"}},
		{PlanRequest{Entries: 5, Hashes: -1}, []string{"k -1", "1 to 1000"}},
		{PlanRequest{Entries: 5, Hashes: 1001}, []string{"k 1001", "1 to 1000"}},
		{PlanRequest{Entries: MaxPlan + 1, Bits: 5}, []string{"n 9007199254740993", "1 to 9007199254740992"}},
		{PlanRequest{Entries: 5, Bits: MaxPlan + 1}, []string{"m 9007199254740993", "1 to 9007199254740992"}},
		{PlanRequest{Entries: 1, Bits: 1, FPR: 0.01}, []string{"for p 0.01 use at least 12 bits, or leave"}},
		{PlanRequest{Entries: MaxPlan, Bits: 100, FPR: 0.01}, []string{"for p 0.01 use at most 10 entries, or leave"}},
		{PlanRequest{Entries: MaxPlan, Bits: 1, FPR: 0.01}, []string{"for p 0.01 leave one of the three out"}},
		{PlanRequest{Entries: MaxPlan, FPR: 0.01}, []string{"8.64e+16 bits", "9007199254740992 at most"}},
		{PlanRequest{Entries: 5, FPR: 1e-300, Hashes: 1}, []string{"5e+300 bits", "raise p"}},
		{PlanRequest{Bits: 8, Hashes: 9}, []string{"8 bits (m)", "single entry"}},
		{PlanRequest{Bits: 8, FPR: 0.0001}, []string{"8 bits (m)", "single entry"}},
		{PlanRequest{Bits: MaxPlan, FPR: 0.9}, []string{"2.07e+16 entries", "lower m or p"}},
	} {
		p, err := NewPlan(c.w)
		var planErr *PlanError
		if !errors.As(err, &planErr) || p != (Plan{}) {
			t.Errorf("%+v: %+v, %v; want a *PlanError and no plan", c.w, p, err)
			continue
		}
		for _, text := range c.says {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%+v: error %q does not say %q", c.w, err, text)
			}
		}
	}
}

func TestPlanErrorNames(t *testing.T) {
	_, err := NewPlan(PlanRequest{FPR: 0.1})
	var planErr *PlanError
	if !errors.As(err, &planErr) {
		t.Fatal(err)
	}
	got := planErr.Text(func(q Quantity) string { return "<" + q.String() + ">" })
	if want := "<p> alone gives no size: add <n> or <m>"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// randomWanted is n up to 10^12 and a rate down to 1e-290, every order of
// magnitude as likely as any.
func randomWanted(r *rand.Rand) (n uint64, p float64) {
	return uint64(math.Pow(10, 12*r.Float64())), math.Pow(10, -290*r.Float64()*r.Float64()) * 0.999
}

// TestPlanRoundTrips derives a measure and then the others from it.
func TestPlanRoundTrips(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		n, p := randomWanted(r)
		plan, err := NewPlan(PlanRequest{Entries: n, FPR: p})
		if err != nil {
			t.Fatalf("n %d, p %v: %v", n, p, err)
		}
		if got := plan.Rate(); got > p {
			t.Fatalf("n %d, p %v: %+v has the rate %v", n, p, plan, got)
		}
		// A bit less would not do, but for rounding: 2^-30 of the bits make room for it.
		if less := uint64(float64(plan.Bits)*(1-0x1p-30)) - 1; plan.Bits > 1 && Rate(less, plan.Hashes, float64(n)) <= p {
			t.Fatalf("n %d, p %v: %+v, but %d bits would do", n, p, plan, less)
		}
		for _, w := range []PlanRequest{
			{Entries: n, FPR: p, Hashes: plan.Hashes},
			{Entries: n, Bits: plan.Bits, Hashes: plan.Hashes},
		} {
			if got, err := NewPlan(w); err != nil || got != plan {
				t.Fatalf("%+v: %+v, %v; want %+v", w, got, err, plan)
			}
		}
		// The bits hold at least the entries that they were made for.
		held, err := NewPlan(PlanRequest{Bits: plan.Bits, FPR: p, Hashes: plan.Hashes})
		if err != nil || float64(held.Entries) < float64(n)*(1-0x1p-30)-1 || held.Rate() > p {
			t.Fatalf("n %d, p %v: %+v holds %+v, %v", n, p, plan, held, err)
		}
		// As many functions do as were planned, and perhaps fewer.
		fewest, err := NewPlan(PlanRequest{Entries: n, Bits: plan.Bits + 1 + plan.Bits>>30, FPR: p})
		if err != nil || fewest.Hashes > plan.Hashes || fewest.Rate() > p {
			t.Fatalf("n %d, p %v: %+v, but with a bit more %+v, %v", n, p, plan, fewest, err)
		}
	}
}

// TestPlanMonotonic wants more bits for more entries and for a lower rate, and
// never less than the bound for all filters and the textbook's optimum.
func TestPlanMonotonic(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		n, p := randomWanted(r)
		plan := func(n uint64, p float64) Plan {
			got, err := NewPlan(PlanRequest{Entries: n, FPR: p})
			if err != nil {
				t.Fatalf("n %d, p %v: %v", n, p, err)
			}
			return got
		}
		base := plan(n, p)
		if more := plan(n+1+n/1000, p); more.Bits < base.Bits {
			t.Fatalf("p %v: %+v has fewer bits than %+v", p, more, base)
		}
		if stricter := plan(n, p*(1-r.Float64()/2)); stricter.Bits < base.Bits || stricter.Hashes < base.Hashes {
			t.Fatalf("below p %v: %+v is less than %+v", p, stricter, base)
		}
		least, optimal := leastBits(float64(n), p), OptimalBits(float64(n), p)
		if m := float64(base.Bits); least > optimal || m < optimal*(1-1e-12) {
			t.Fatalf("n %d, p %v: %v bits at the optimum %v and the least %v", n, p, m, optimal, least)
		}
	}
}

// TestPlanErrorsHelp does what the errors say would do.
func TestPlanErrorsHelp(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	entries, bits := 0, 0
	for range 20_000 {
		n, p := randomWanted(r)
		w := PlanRequest{Entries: n, FPR: p, Bits: 1 + uint64(float64(n)*r.ExpFloat64())}
		_, err := NewPlan(w)
		if err == nil {
			continue
		}
		for words, with := range map[string]func(x uint64) PlanRequest{
			"at most ":  func(x uint64) PlanRequest { return PlanRequest{Entries: x, FPR: p, Bits: w.Bits} },
			"at least ": func(x uint64) PlanRequest { return PlanRequest{Entries: n, FPR: p, Bits: x} },
		} {
			_, rest, found := strings.Cut(err.Error(), words)
			if !found {
				continue
			}
			var x uint64
			if _, err := fmt.Sscan(rest, &x); err != nil {
				t.Fatal(err)
			}
			if _, still := NewPlan(with(x)); still != nil {
				t.Fatalf("%+v: %v\n%s%d: %v", w, err, words, x, still)
			}
			if words == "at most " {
				entries++
			} else {
				bits++
			}
		}
	}
	if entries < 1000 || bits < 1000 {
		t.Errorf("only %d and %d pieces of advice", entries, bits)
	}
}

func FuzzNewPlan(f *testing.F) {
	f.Add(uint64(1_000_000), 0.01, uint64(0), 0)
	f.Add(uint64(1e12), 1e-300, uint64(0), 0)
	f.Add(uint64(0), 0.5, uint64(1), 0)
	f.Add(uint64(0), 0.0, uint64(1)<<28, 11)
	f.Add(uint64(1), 0.0, uint64(MaxPlan), 0)
	f.Add(uint64(5), 0.999999999999, uint64(7), 0)
	f.Add(uint64(MaxPlan), 0.0, uint64(1), 0)
	f.Add(uint64(MaxPlan), 0.9999999, uint64(0), 0)
	f.Add(uint64(MaxPlan-12345), 1-1e-12, uint64(0), 0)
	f.Fuzz(func(t *testing.T, n uint64, p float64, m uint64, k int) {
		w := PlanRequest{Entries: n, FPR: p, Bits: m, Hashes: k}
		plan, err := NewPlan(w)
		if err != nil {
			return
		}
		if n > 0 && plan.Entries != n || m > 0 && plan.Bits != m || k > 0 && plan.Hashes != k {
			t.Fatalf("%+v: %+v is not what was given", w, plan)
		}
		if plan.Entries < 1 || plan.Bits < 1 || plan.Hashes < 1 || plan.Entries > MaxPlan || plan.Bits > MaxPlan || plan.Hashes > MaxPlanHashes {
			t.Fatalf("%+v: %+v is beyond the limits", w, plan)
		}
		if rate := plan.Rate(); p > 0 && rate > p || !(rate >= 0 && rate <= 1) {
			t.Fatalf("%+v: %+v has the rate %v", w, plan, rate)
		}
		for _, v := range []float64{plan.Fill(), plan.FPRBound(), plan.BitsPerEntry(), plan.OptimalHashes(), plan.LeastBits()} {
			if math.IsNaN(v) || math.IsInf(v, 0) || math.Signbit(v) {
				t.Fatalf("%+v: %+v has a measure %v", w, plan, v)
			}
		}
	})
}

// TestPlanNearOne asks for rates so near 1 that FPR is the same for billions of m:
// looking for the first that does, bit by bit, would not end.
func TestPlanNearOne(t *testing.T) {
	plans := 0
	for _, p := range []float64{1 - 0x1p-53, 1 - 0x1p-52, 1 - 1e-15, 1 - 1e-14, 1 - 1e-12, 1 - 3e-12, 1 - 1e-10, 1 - 1e-7} {
		for _, size := range []uint64{MaxPlan, MaxPlan - 12345, 1e15, 1e12} {
			for _, k := range []int{0, 1, 2, 5, 100, 1000} {
				for _, w := range []PlanRequest{{Entries: size, FPR: p, Hashes: k}, {Bits: size, FPR: p, Hashes: k}} {
					plan, err := NewPlan(w)
					if planErr := (*PlanError)(nil); err != nil && !errors.As(err, &planErr) {
						t.Errorf("%+v: %v", w, err)
					}
					if err == nil && plan.Rate() > p {
						t.Errorf("%+v: %+v has the rate %v", w, plan, plan.Rate())
					}
					if err == nil {
						plans++
					}
				}
			}
		}
	}
	if plans < 100 {
		t.Errorf("only %d of the plans could be made", plans)
	}
}
