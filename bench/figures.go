package main

import (
	"fmt"
	"math"
	"slices"
)

// figures are measured numbers by target, one for each round.
type figures map[string][]float64

// add adds the number of a round.
func (f figures) add(target string, number float64) { f[target] = append(f[target], number) }

// median returns a target's median.
func (f figures) median(target string) float64 { return spreadOf(f[target]).median }

// ratio compares two targets within each round, since a shared machine is not
// equally fast in all of them.
func (f figures) ratio(target, base string) spread {
	var ratios []float64
	for i, number := range f[target][:min(len(f[target]), len(f[base]))] {
		ratios = append(ratios, number/f[base][i])
	}
	return spreadOf(ratios)
}

// spread is the median of some numbers, and their range.
type spread struct{ median, least, most float64 }

// spreadOf returns NaN for no numbers.
func spreadOf(numbers []float64) spread {
	if len(numbers) == 0 {
		return spread{math.NaN(), math.NaN(), math.NaN()}
	}
	s := slices.Sorted(slices.Values(numbers))
	n := len(s)
	return spread{(s[(n-1)/2] + s[n/2]) / 2, s[0], s[n-1]}
}

func (s spread) String() string { return s.format("%.2f (%.2f–%.2f)") }

// format formats the median and the range.
func (s spread) format(format string) string { return fmt.Sprintf(format, s.median, s.least, s.most) }
