package hashlab

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// alpha is the part of cases that an interval of 95% confidence misses.
const alpha = 0.05

// clopperPearson returns the limits of 95% confidence of a probability after hits
// in trials, hits ≤ trials. They are exact: never too narrow, however rare the hits
// (C. J. Clopper and E. S. Pearson, Biometrika 26, 1934). Each side misses 2.5%.
//
// Without hits, and if all trials are hits, there is one limit, which misses 5%:
// the upper bound of zero hits is 1 - 0.05^(1/trials), near 3/trials. Without
// trials the limits are 0 and 1.
func clopperPearson(hits, trials uint64) (low, high float64) {
	if trials == 0 {
		return 0, 1
	}
	n := float64(trials)
	// 0.05^(1/n) is e^(ln 0.05 / n), which keeps the digits of its distance from 1.
	switch hits {
	case 0:
		return 0, -math.Expm1(math.Log(alpha) / n)
	case trials:
		return math.Exp(math.Log(alpha) / n), 1
	}
	h := float64(hits)
	return mathext.InvRegIncBeta(h, n-h+1, alpha/2), mathext.InvRegIncBeta(h+1, n-h, 1-alpha/2)
}

// holm corrects the p-values of tests that belong together (S. Holm, Scandinavian
// Journal of Statistics 6, 1979): if those below α are called significant, the
// probability of any error is at most α, whether or not the tests are independent.
// The result is in p's order.
func holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	corrected := make([]float64, len(p))
	most := 0.0 // a larger p must not have a smaller result
	for rank, i := range order {
		most = max(most, min(1, float64(len(p)-rank)*p[i]))
		corrected[i] = most
	}
	return corrected
}

// chiSquareP returns the probability that a χ² value of df ≥ 1 degrees of freedom is
// x2 or more. It is precise far into the tail, to the least float64 (about 1e-308),
// and 0 beyond.
func chiSquareP(x2 float64, df int) float64 {
	if x2 <= 0 {
		return 1
	}
	return mathext.GammaIncRegComp(float64(df)/2, x2/2)
}

// chiSquareBelow returns the probability that a χ² value of df ≥ 1 degrees of
// freedom is x2 or less: small if values are spread more evenly than by chance.
func chiSquareBelow(x2 float64, df int) float64 {
	if x2 <= 0 {
		return 0
	}
	return mathext.GammaIncReg(float64(df)/2, x2/2)
}
