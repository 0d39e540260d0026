package bloom

import (
	"fmt"
	"math"
)

// The limits of a plan.
const (
	// MaxPlan is the largest number of entries or bits: 2^53, up to which a
	// float64 holds every whole number, or 1 PiB. A [Filter] has at most
	// [MaxBits].
	MaxPlan = 1 << 53

	// MaxPlanHashes is the largest number of functions. The best k for a rate p
	// is log2(1/p), so MinPlanFPR needs no more than 997.
	MaxPlanHashes = 1000

	// MinPlanFPR is the lowest rate of a request, near the smallest number that
	// a float64 holds with all its digits.
	MinPlanFPR = 1e-300
)

// PlanRequest is what is known about a filter that is to be planned. Zero means
// unknown.
type PlanRequest struct {
	Entries uint64  // n, up to MaxPlan
	FPR     float64 // p, from MinPlanFPR to below 1
	Bits    uint64  // m, up to MaxPlan
	Hashes  int     // k, up to MaxPlanHashes
}

// Plan is the size of a filter.
type Plan struct {
	Entries uint64 // n
	Bits    uint64 // m
	Hashes  int    // k
}

// NewPlan computes what is not given:
//
//	given     computed
//	n, p      the whole k that needs the fewest bits, and those bits
//	n, p, k   m, by BitsFor
//	m, p      the whole k that holds the most entries, and their number
//	m, p, k   n, by EntriesFor
//	n, m      the best k
//	n, m, p   the fewest functions that reach p
//	n, m, k   nothing but the rate
//	m, k      the n for which k is best: half of the bits get set, p is 2^-k
//	n, k      the m for which k is best
//
// It rounds bits up and entries down until the plan's [Plan.Rate], which is exact for
// few entries, is at most p. The error is a [*PlanError].
func NewPlan(w PlanRequest) (Plan, error) {
	if err := w.check(); err != nil {
		return Plan{}, err
	}
	p := Plan{Entries: w.Entries, Bits: w.Bits, Hashes: w.Hashes}
	n, m, k := float64(w.Entries), float64(w.Bits), float64(w.Hashes)
	var err error
	switch {
	case n > 0 && m > 0 && w.FPR > 0:
		p.Hashes, err = fewestHashes(w)
	case n > 0 && m > 0:
		if w.Hashes == 0 {
			p.Hashes = bestHashes(w.Bits, n)
		}
	case w.FPR > 0:
		if w.Hashes == 0 {
			p.Hashes = hashesFor(w.FPR)
		}
		if n > 0 {
			p.Bits, err = enoughBits(n, w.FPR, p.Hashes)
		} else {
			p.Entries, err = mostEntries(w.Bits, w.FPR, p.Hashes)
		}
	case n > 0:
		p.Bits, err = wholeBits(k * n / math.Ln2)
	default:
		p.Entries, err = wholeEntries(w.Bits, Capacity(w.Bits, w.Hashes))
	}
	if err != nil {
		return Plan{}, err
	}
	return p, nil
}

// check reports what is out of range, missing or too much.
func (w PlanRequest) check() error {
	switch {
	case w.Entries > MaxPlan:
		return planError("%v %d is too large: use 1 to %d", N, w.Entries, uint64(MaxPlan))
	case w.Bits > MaxPlan:
		return planError("%v %d is too large: use 1 to %d", M, w.Bits, uint64(MaxPlan))
	case w.Hashes < 0 || w.Hashes > MaxPlanHashes:
		return planError("%v %d is not allowed: use 1 to %d", K, w.Hashes, MaxPlanHashes)
	case w.FPR != 0 && !(w.FPR >= MinPlanFPR && w.FPR < 1): // no NaN either
		return planError("%v %v is not allowed: use %v to below 1", P, w.FPR, MinPlanFPR)
	}
	n, p, m, k := w.Entries > 0, w.FPR > 0, w.Bits > 0, w.Hashes > 0
	switch {
	case n && p && m && k:
		return planError("%v, %v, %v and %v are one too many: leave out the one that should be computed", N, P, M, K)
	case n && (p || m || k) || m && (p || k):
		return nil
	case n:
		return planError("%v alone leaves all open: add %v, %v or %v", N, P, M, K)
	case m:
		return planError("%v alone leaves all open: add %v, %v or %v", M, N, P, K)
	case p && k:
		return planError("%v and %v give no size: add %v or %v", P, K, N, M)
	case p:
		return planError("%v alone gives no size: add %v or %v", P, N, M)
	case k:
		return planError("%v alone gives no size: add %v or %v", K, N, M)
	}
	return planError("nothing is given: start from two of %v, %v, %v and %v", N, P, M, K)
}

// hashesFor returns the whole k that needs the fewest bits for the rate p, for any
// number of entries. It is one of the two numbers beside log2(1/p), where half of
// the bits are set.
func hashesFor(p float64) int {
	ideal := -math.Log2(p)
	low, high := max(int(math.Floor(ideal)), 1), max(int(math.Ceil(ideal)), 1)
	if BitsFor(1, p, high) < BitsFor(1, p, low) {
		return high
	}
	return low
}

// fewestHashes returns the smallest k that reaches the rate. Each further function
// lowers the rate, up to the best k.
func fewestHashes(w PlanRequest) (int, error) {
	n := float64(w.Entries)
	best := bestHashes(w.Bits, n)
	for k := 1; k <= best; k++ {
		if Rate(w.Bits, k, n) <= w.FPR {
			return k, nil
		}
	}
	// The error suggests what would reach the rate, if there is such a plan.
	k := hashesFor(w.FPR)
	entries, tooFew := mostEntries(w.Bits, w.FPR, k)
	bits, tooMany := enoughBits(n, w.FPR, k)
	format := "%d entries (%v) in %d bits (%v) have a rate of %.3g at best, with k = %d: for %v %v "
	args := []any{w.Entries, N, w.Bits, M, Rate(w.Bits, best, n), best, P, w.FPR}
	switch {
	case tooFew == nil && tooMany == nil:
		return 0, planError(format+"use at most %d entries or at least %d bits, or leave one of the three out", append(args, entries, bits)...)
	case tooFew == nil:
		return 0, planError(format+"use at most %d entries, or leave one of the three out", append(args, entries)...)
	case tooMany == nil:
		return 0, planError(format+"use at least %d bits, or leave one of the three out", append(args, bits)...)
	}
	return 0, planError(format+"leave one of the three out", args...)
}

// bestHashes returns the whole k with the lowest rate. For few entries that is lower
// than the formula's.
func bestHashes(m uint64, n float64) int {
	k := BestHashes(float64(m), n)
	for Exact(k, n) && k > 1 && Rate(m, k-1, n) < Rate(m, k, n) {
		k--
	}
	return k
}

// enoughBits returns the smallest whole m with which n entries and k functions
// reach the rate p.
func enoughBits(n, p float64, k int) (uint64, error) {
	few, err := wholeBits(BitsFor(n, p, k)) // at most one too few, but never too many
	if err != nil || Rate(few, k, n) <= p {
		return few, err
	}
	many := few
	// Near p = 1 the rate has the same value for many m: so the steps double.
	for step := 1.0; err == nil && Rate(many, k, n) > p; step *= 2 {
		few = many
		many, err = wholeBits(float64(many) + step)
	}
	for err == nil && many-few > 1 {
		if middle := few + (many-few)/2; Rate(middle, k, n) <= p {
			many = middle
		} else {
			few = middle
		}
	}
	return many, err
}

// wholeBits rounds up a number of bits.
func wholeBits(m float64) (uint64, error) {
	if m > MaxPlan {
		return 0, planError("that needs %.3g bits, and a plan has %d at most: lower %v or %v, or raise %v", m, uint64(MaxPlan), N, K, P)
	}
	return uint64(max(math.Ceil(m), 1)), nil
}

// mostEntries returns the largest whole n that m bits and k functions hold at the
// rate p.
func mostEntries(m uint64, p float64, k int) (uint64, error) {
	many, err := wholeEntries(m, EntriesFor(float64(m), p, k))
	if err != nil || Rate(m, k, float64(many)) <= p {
		return many, err
	}
	few := many
	for step := uint64(1); Rate(m, k, float64(few)) > p; step *= 2 { // as in enoughBits
		many = few
		if few <= step {
			return wholeEntries(m, 0) // 0 have the rate 0
		}
		few -= step
	}
	for many-few > 1 {
		if middle := few + (many-few)/2; Rate(m, k, float64(middle)) <= p {
			few = middle
		} else {
			many = middle
		}
	}
	return few, nil
}

// wholeEntries rounds down the number of entries that m bits hold.
func wholeEntries(m uint64, n float64) (uint64, error) {
	switch {
	case n < 1:
		return 0, planError("%d bits (%v) are too few for a single entry: raise %v or %v, or choose another %v", m, M, M, P, K)
	case n > MaxPlan:
		return 0, planError("%d bits (%v) would hold %.3g entries, and a plan has %d at most: lower %v or %v", m, M, n, uint64(MaxPlan), M, P)
	}
	return uint64(n), nil
}

// Rate returns the rate that the plan does not exceed, by [Rate].
func (p Plan) Rate() float64 { return Rate(p.Bits, p.Hashes, float64(p.Entries)) }

// FPRBound returns an upper bound of the rate, by [FPRBound].
func (p Plan) FPRBound() float64 { return FPRBound(p.Bits, p.Hashes, float64(p.Entries)) }

// Fill returns the share of the bits that n entries set: 1 - e^(-k·n/m).
func (p Plan) Fill() float64 {
	return FPR(p.Bits, 1, float64(p.Hashes)*float64(p.Entries))
}

// BitsPerEntry returns m/n.
func (p Plan) BitsPerEntry() float64 { return float64(p.Bits) / float64(p.Entries) }

// OptimalHashes returns the best k for n and m, a fraction, by [OptimalHashes].
func (p Plan) OptimalHashes() float64 { return OptimalHashes(float64(p.Bits), float64(p.Entries)) }

// MemoryBytes returns the size of the bitmap: m/8, rounded up.
func (p Plan) MemoryBytes() uint64 { return (p.Bits + 7) / 8 }

// LeastBits returns the number of bits that a filter of any kind needs to hold n
// entries at this rate p, if there are many more possible keys than n:
//
//	n · log2(1/p)
//
// Source: Carter, Floyd, Gill, Markowsky and Wegman, "Exact and Approximate
// Membership Testers" (ACM STOC 1978).
func (p Plan) LeastBits() float64 {
	// Not by FPR, which may be 0; and 0 bits for a rate of 1, not -0.
	return max(-float64(p.Entries)*logFPR(float64(p.Bits), p.Hashes, float64(p.Entries))/math.Ln2, 0)
}

// Quantity is one of the quantities of a plan.
type Quantity uint8

// The quantities.
const (
	N Quantity = iota // entries
	P                 // false positive rate
	M                 // bits
	K                 // hash functions
)

// String returns "n", "p", "m" or "k".
func (q Quantity) String() string { return "npmk"[q : q+1] }

// PlanError says why there is no plan, and what to change.
type PlanError struct {
	format string
	args   []any // a Quantity stands for its name
}

func planError(format string, args ...any) *PlanError { return &PlanError{format, args} }

// Error returns the message with the names n, p, m and k.
func (e *PlanError) Error() string { return "filter plan: " + e.Text(Quantity.String) }

// Text returns the message with other names for the quantities, such as the names
// of flags.
func (e *PlanError) Text(name func(Quantity) string) string {
	args := make([]any, len(e.args))
	for i, arg := range e.args {
		if q, ok := arg.(Quantity); ok {
			arg = name(q)
		}
		args[i] = arg
	}
	return fmt.Sprintf(e.format, args...)
}
