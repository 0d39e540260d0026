// Package format writes the numbers of a report of package hashlab for people.
package format

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"spamgate/internal/hashlab"
	"spamgate/internal/text"
)

// Rate returns a probability with three significant digits: 0.0123, and 1.23e-5
// below a thousandth.
func Rate(x float64) string { return Digits(x, 3) }

// Digits returns x ≥ 0 with so many significant digits, with a power of ten below
// a thousandth and from a million on.
func Digits(x float64, digits int) string {
	if x == 0 || !hashlab.Known(x) {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	s := strconv.FormatFloat(x, 'e', digits-1, 64) // rounds first, so that 0.9999 is 1.00
	mantissa, exponent, _ := strings.Cut(s, "e")
	e, _ := strconv.Atoi(exponent) // written by FormatFloat
	if e < -3 || e >= 6 {
		return mantissa + "e" + strconv.Itoa(e)
	}
	return strconv.FormatFloat(x, 'f', max(0, digits-1-e), 64)
}

// Interval returns a rate with its limits: "0.0123 [0.0119, 0.0127]". Without
// hits it returns the upper limit: "< 3.00e-7".
func Interval(i hashlab.Interval, hits uint64) string {
	if hits == 0 {
		return "< " + Rate(i.High)
	}
	return fmt.Sprintf("%s [%s, %s]", Rate(i.Value), Rate(i.Low), Rate(i.High))
}

// EffectiveK returns an effective k and its limits: "8.97" and "[8.80, 9.10]". If
// it is unknown, since there were no hits, it returns the lower limit: "> 6.12".
func EffectiveK(r hashlab.FPRRow) (k, limits string) {
	e := r.EffectiveK
	if !hashlab.Known(e.Value) {
		return "> " + Digits(e.Low, 3), ""
	}
	return fmt.Sprintf("%.2f", e.Value), fmt.Sprintf("[%.2f, %.2f]", e.Low, e.High)
}

// Ratio returns how many times the formula's the measured rate is, or without
// hits the upper bound of that.
func Ratio(r hashlab.FPRRow) string {
	switch {
	case r.Formula == 0:
		return "-"
	case r.Hits == 0:
		return "< " + Digits(r.Rate.High/r.Formula, 2)
	}
	return Factor(r.Rate.Value / r.Formula)
}

// Factor returns a factor, near one with two decimals, so that factors below and
// above one line up.
func Factor(x float64) string {
	if x >= 0.1 && x < 100 {
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return Digits(x, 3)
}

// Bits returns a filter's size, as 2^20 if it is a power of two.
func Bits(m uint64) string {
	if bits.OnesCount64(m) == 1 {
		return fmt.Sprintf("2^%d", bits.Len64(m)-1)
	}
	return text.Number(m)
}

// P returns a p-value, the smallest ones as a limit.
func P(p float64) string {
	if p < 1e-12 {
		return "< 1e-12"
	}
	return Digits(p, 2)
}

// Equivalence returns the ratio of a comparison with the formula and its 90% interval,
// as "1.01 [0.99, 1.03]".
func Equivalence(e hashlab.Equivalence) string {
	if !hashlab.Known(e.Ratio.Value) {
		return "-"
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f]", e.Ratio.Value, e.Ratio.Low, e.Ratio.High)
}
