package chart

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// maxDecades is the greatest number of labels of an axis.
const maxDecades = 10

// maxMinor is the greatest distance of labels, in decades, at which the decades
// between them have a mark.
const maxMinor = 5

// LogScale makes an axis logarithmic from 10^low to 10^high, low < high, with the
// powers of ten for labels. Call it after everything has been added to the plot,
// since adding widens the axes. Values outside are cut off, and must be above zero:
// gonum/plot panics at the logarithm of others.
func LogScale(axis *plot.Axis, low, high int) {
	axis.Scale = plot.LogScale{}
	axis.Min, axis.Max = math.Pow10(low), math.Pow10(high)
	step := (high - low + maxDecades - 1) / maxDecades
	var ticks plot.ConstantTicks
	for e := low; e <= high; e++ {
		tick := plot.Tick{Value: math.Pow10(e)}
		if (high-e)%step == 0 { // the top always has a label
			tick.Label = Power(e)
		}
		if tick.Label != "" || step <= maxMinor {
			ticks = append(ticks, tick)
		}
		for i := 2; step == 1 && e < high && i < 10; i++ {
			ticks = append(ticks, plot.Tick{Value: float64(i) * math.Pow10(e)})
		}
	}
	axis.Tick.Marker = ticks
}

// superscripts are the characters of an exponent.
var superscripts = strings.NewReplacer("-", "⁻", "0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴",
	"5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹")

// Power returns ten to the power of e as people write it: 10⁻³, and 1 for e = 0.
func Power(e int) string {
	if e == 0 {
		return "1"
	}
	return "10" + superscripts.Replace(strconv.Itoa(e))
}
