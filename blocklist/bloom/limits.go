package bloom

import "math"

// Limits returns the limits between which a rate lies with 95% confidence, if hits of
// so many trials were counted. Without trials they are 0 and 1.
//
// Source: Wilson, "Probable Inference, the Law of Succession, and Statistical
// Inference" (Journal of the American Statistical Association 22(158), 1927).
func Limits(hits, trials int) (low, high float64) {
	if trials == 0 {
		return 0, 1
	}
	const z = 1.959963984540054 // of the normal distribution, 2.5% on each side
	n, p := float64(trials), float64(hits)/float64(trials)
	middle := p + z*z/(2*n)
	half := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	low, high = (middle-half)/(1+z*z/n), (middle+half)/(1+z*z/n)
	if hits == 0 {
		low = 0 // without a rounding error
	}
	return max(low, 0), min(high, 1)
}
