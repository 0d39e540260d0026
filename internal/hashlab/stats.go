package hashlab

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// outside is the part of cases that an interval of 95% confidence misses.
const outside = 0.05

// clopperPearson returns the limits of 95% confidence of a probability that was
// met hits times in trials, hits ≤ trials. They are exact: never too narrow,
// however rare the hits (C. J. Clopper and E. S. Pearson, Biometrika 26, 1934).
// Each side misses 2.5%.
//
// With no hits, and with nothing but hits, only one side is open, and that side
// is given the whole 5%: the upper bound of zero hits is 1 - 0.05^(1/trials),
// near 3/trials. No trials say nothing: from 0 to 1.
func clopperPearson(hits, trials uint64) (low, high float64) {
	if trials == 0 {
		return 0, 1
	}
	n := float64(trials)
	// 0.05^(1/n) as e^(ln 0.05 / n), so that its distance from 1 keeps its digits.
	switch hits {
	case 0:
		return 0, -math.Expm1(math.Log(outside) / n)
	case trials:
		return math.Exp(math.Log(outside) / n), 1
	}
	h := float64(hits)
	return mathext.InvRegIncBeta(h, n-h+1, outside/2), mathext.InvRegIncBeta(h+1, n-h, 1-outside/2)
}

// holm corrects the p-values of tests that were made together (S. Holm,
// Scandinavian Journal of Statistics 6, 1979): calling those that come out below
// α significant is wrong about any of them with probability α at most, whether
// or not the tests are independent. The result is in p's order.
func holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	corrected := make([]float64, len(p))
	most := 0.0 // a larger p must not come out below a smaller one
	for rank, i := range order {
		most = max(most, min(1, float64(len(p)-rank)*p[i]))
		corrected[i] = most
	}
	return corrected
}

// chiSquareP is the probability that a χ² value of df ≥ 1 degrees of freedom is
// x2 or more. It keeps its digits far in the tail, down to where a float64 ends
// (about 1e-308), and is 0 beyond.
func chiSquareP(x2 float64, df int) float64 {
	if x2 <= 0 {
		return 1
	}
	return mathext.GammaIncRegComp(float64(df)/2, x2/2)
}

// chiSquareBelow is the probability that a χ² value of df ≥ 1 degrees of freedom
// is x2 or less: small where values are spread more evenly than chance does it.
func chiSquareBelow(x2 float64, df int) float64 {
	if x2 <= 0 {
		return 0
	}
	return mathext.GammaIncReg(float64(df)/2, x2/2)
}
