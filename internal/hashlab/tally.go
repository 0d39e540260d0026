package hashlab

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// tally counts hits by filter, and by unit: a key or message, which is a query of
// many splits.
type tally struct {
	hits, trials []uint64 // by filter
	byUnit       []uint8  // hits in all filters; nil if units are not repeated
}

func newTally(filters, units int) *tally {
	return &tally{hits: make([]uint64, filters), trials: make([]uint64, filters), byUnit: make([]uint8, units)}
}

// hit counts a hit.
func (t *tally) hit(filter int, unit int32) {
	t.hits[filter]++
	t.byUnit[unit]++
}

// add adds the counts of another worker.
func (t *tally) add(other *tally) {
	for i := range t.hits {
		t.hits[i] += other.hits[i]
		t.trials[i] += other.trials[i]
	}
	for i, hits := range other.byUnit {
		t.byUnit[i] += hits
	}
}

// total returns the sums over all filters.
func (t *tally) total() (hits, trials uint64) {
	for i := range t.hits {
		hits += t.hits[i]
		trials += t.trials[i]
	}
	return hits, trials
}

// rate returns hits/trials with its limits of 95% confidence, see [FPRRow.Rate].
// Asked is how often each unit was a query; nil if units are not repeated.
func (t *tally) rate(asked []uint8) Interval {
	hits, trials := t.total()
	if trials == 0 {
		return Interval{}
	}
	r := float64(hits) / float64(trials)
	low, high := clopperPearson(hits, trials)
	filters := float64(len(t.hits))
	if hits == 0 || filters < 2 {
		return Interval{r, low, high}
	}
	v := squares(t.hits, t.trials, r) * filters / (filters - 1)
	if asked != nil {
		v = max(v, v+squares(t.byUnit, asked, r)-r*(1-r)*float64(trials))
	}
	deviation := math.Sqrt(v) / float64(trials)
	student := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: filters - 1}.Quantile(1 - alpha/2)
	factor := math.Exp(student * deviation / r) // of the logarithm, so that no limit falls below 0
	return Interval{r, min(low, r/factor), max(high, min(1, r*factor))}
}

// squares returns the sum of (hits - r·trials)².
func squares[T uint8 | uint64](hits, trials []T, r float64) float64 {
	sum := 0.0
	for i := range hits {
		d := float64(hits[i]) - r*float64(trials[i])
		sum += d * d
	}
	return sum
}
