package hashlab

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"spamgate/internal/text"
)

// FormatRate writes a part of one with three digits that count: 0.0123, and
// 1.23e-5 below a thousandth.
func FormatRate(x float64) string { return formatDigits(x, 3) }

// formatDigits writes x ≥ 0 with some digits that count, as powers of ten below
// a thousandth and from a million on.
func formatDigits(x float64, digits int) string {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
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

// FormatInterval writes a rate with its limits: "0.0123 [0.0119, 0.0127]". Where
// nothing was hit it is the upper limit alone: "< 3.00e-7".
func FormatInterval(i Interval, hits uint64) string {
	if hits == 0 {
		return "< " + FormatRate(i.High)
	}
	return fmt.Sprintf("%s [%s, %s]", FormatRate(i.Value), FormatRate(i.Low), FormatRate(i.High))
}

// FormatEffectiveK writes an effective k with its limits: "8.97 [8.8, 9.1]". Where
// it is unknown, since nothing was hit, it is the lower limit alone: "> 6.12".
func FormatEffectiveK(r FPRRow) string {
	if !known(r.EffectiveK.Value) {
		return "> " + formatDigits(r.EffectiveK.Low, 3)
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f]", r.EffectiveK.Value, r.EffectiveK.Low, r.EffectiveK.High)
}

// FormatRatio writes how many times the formula's the measured rate is, or for
// no hits what it is below.
func FormatRatio(r FPRRow) string {
	if r.Formula == 0 {
		return "-"
	}
	if r.Hits == 0 {
		return "< " + formatDigits(r.Rate.High/r.Formula, 2)
	}
	return formatFactor(r.Rate.Value / r.Formula)
}

// formatFactor writes a factor near one with two places, so that factors below
// and above one line up.
func formatFactor(x float64) string {
	if x >= 0.1 && x < 100 {
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return formatDigits(x, 3)
}

// FormatBits writes a filter's size: 2^20 where it is a power of two.
func FormatBits(m uint64) string {
	if m > 0 && m&(m-1) == 0 {
		return fmt.Sprintf("2^%d", int(math.Log2(float64(m))))
	}
	return text.Number(m)
}

// FormatP writes a p-value, the smallest ones as a limit.
func FormatP(p float64) string {
	if p < 1e-12 {
		return "< 1e-12"
	}
	return formatDigits(p, 2)
}
