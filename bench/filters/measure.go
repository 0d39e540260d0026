package main

import (
	"fmt"
	"io"
	"runtime"
	"time"
)

// measure builds the filters, counts their false positives and times lookups. It
// writes to progress what it is doing.
func measure(o options, progress io.Writer) (*report, error) {
	p, err := newPlan(o.entries, o.classicBits)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(progress, "making up addresses")
	added := addresses(o.entries, 0)
	absent := addresses(o.trials, o.entries)

	r := newReport(o, p)
	contenders := p.contenders()
	filters := make([]filter, len(contenders))
	for round := range o.builds {
		for i := range inTurn(len(contenders), round) {
			fmt.Fprintf(progress, "building, turn %d of %d: %s\n", round+1, o.builds, contenders[i].name)
			filters[i] = filter{} // frees the memory before the next is built
			runtime.GC()
			start := time.Now()
			if filters[i], err = contenders[i].build(added); err != nil {
				return nil, fmt.Errorf("%s: %w", contenders[i].name, err)
			}
			r.Filters[i].Build = append(r.Filters[i].Build, perKey(start, o.entries))
		}
	}
	for i, f := range filters {
		fmt.Fprintf(progress, "counting false positives: %s\n", contenders[i].name)
		r.Filters[i].BytesPerKey = float64(f.bits) / 8 / float64(o.entries)
		r.Filters[i].FalsePositives = f.count(absent)
	}
	for round := range o.rounds {
		fmt.Fprintf(progress, "looking up, turn %d of %d\n", round+1, o.rounds)
		from := round * o.lookups % (len(absent) - o.lookups + 1)
		if err := lookUp(r, filters, round, absent[from:from+o.lookups], sample(added, o.lookups, uint64(round))); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// lookUp times one turn of lookups.
func lookUp(r *report, filters []filter, round int, absent, present [][]byte) error {
	runtime.GC()
	for i := range inTurn(len(filters), round) {
		result := &r.Filters[i]
		start := time.Now()
		filters[i].count(absent)
		result.Absent = append(result.Absent, perKey(start, len(absent)))

		start = time.Now()
		found := filters[i].count(present)
		result.Present = append(result.Present, perKey(start, len(present)))
		if found != len(present) {
			return fmt.Errorf("%s denies %d of %d keys that were added", result.Name, len(present)-found, len(present))
		}
	}
	return nil
}

// inTurn yields 0 … n-1, each round from another number on.
func inTurn(n, round int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield((i + round) % n) {
				return
			}
		}
	}
}

// perKey returns the time since start for each of n keys, in nanoseconds.
func perKey(start time.Time, n int) float64 {
	return float64(time.Since(start).Nanoseconds()) / float64(n)
}
