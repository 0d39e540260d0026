package store

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// span is the fewest and the most of something that some versions have.
type span struct{ fewest, most int }

// spanOf returns the span of what count returns for the versions.
func spanOf(versions []servedVersion, count func(*servedVersion) int) span {
	s := span{math.MaxInt, 0}
	for i := range versions {
		n := count(&versions[i])
		s.fewest, s.most = min(s.fewest, n), max(s.most, n)
	}
	return s
}

// comparison is what an update is compared with.
type comparison struct {
	guards
	settled []servedVersion // those that count as right, or else the oldest
	recent  []servedVersion // those and the last ones, the one that serves at the end
	now     time.Time
}

// check compares the sizes of an update with those of the versions before, the newest last. It
// compares with the fewest and the most entries that the last ones or the settled ones have, so that a
// wrong version does not keep its repair out. So that many small steps do not make what a large
// one may not, it also compares with the settled ones alone: in a day a list may change twice by
// what it may change at once. Of a list from a URL it also compares how many entries will be left.
func (g guards) check(n sizes, served []servedVersion, fetched bool, now time.Time) error {
	if n.Left[0] < g.minEntries {
		return fmt.Errorf("%w: %d, and min_entries is %d", ErrFew, n.Left[0], g.minEntries)
	}
	if len(served) == 0 {
		return nil
	}
	served = g.withoutMistakes(served)
	c := comparison{guards: g, now: now}
	for _, v := range served {
		if v.settled(now) {
			c.settled = append(c.settled, v)
		}
	}
	if c.settled == nil {
		c.settled = served[:1]
	}
	c.recent = slices.Concat(c.settled, served[max(0, len(served)-comparedVersions):])
	if err := c.exceptions(n); err != nil {
		return err
	}
	if err := c.shrunk(n); err != nil {
		return err
	}
	if fetched {
		if err := c.expiring(n); err != nil {
			return err
		}
	}
	return c.grown(n)
}

// withoutMistakes returns the versions without those that were accepted although they looked
// wrong, if the list has changed back since: going there again would be held, too.
func (g guards) withoutMistakes(served []servedVersion) []servedVersion {
	var right []servedVersion
	for i, v := range served {
		undone := v.Forced && slices.ContainsFunc(served[i+1:], func(later servedVersion) bool {
			return float64(v.Left[0]) < float64(later.Left[0])*(1-g.maxShrink) ||
				g.maxGrowth > 0 && float64(v.Entries) > float64(later.Entries)*g.maxGrowth
		})
		if !undone {
			right = append(right, v)
		}
	}
	return right
}

// left returns a function that counts the entries of a version which are left after horizon h.
func left(h int) func(*servedVersion) int {
	return func(v *servedVersion) int { return v.Left[h] }
}

// shrunk compares the entries in effect.
func (c *comparison) shrunk(n sizes) error {
	have, before := n.Left[0], spanOf(c.recent, left(0))
	if before.most < guardEntries {
		return nil
	}
	if float64(have) < float64(before.fewest)*(1-c.maxShrink) {
		return fmt.Errorf("%w: from %d entries to %d, and max_shrink is %s", ErrShrunk, before.fewest, have, c.percent())
	}
	// What has expired by itself does not count.
	settled := spanOf(c.settled, func(v *servedVersion) int { return min(v.Left[0], v.after(c.now.Sub(v.Live))) })
	if float64(have) < float64(settled.fewest)*(1-c.maxShrink)*(1-c.maxShrink) {
		return fmt.Errorf("%w: from %d entries to %d within a day, and max_shrink is %s, twice a day at most", ErrShrunk, settled.fewest, have, c.percent())
	}
	return nil
}

// expiring compares the entries that will be left.
func (c *comparison) expiring(n sizes) error {
	for h := 1; h < len(n.Left); h++ {
		last, settled := spanOf(c.recent, left(h)), spanOf(c.settled, left(h))
		few := float64(n.Left[h]) < float64(last.fewest)*(1-c.maxShrink) ||
			float64(n.Left[h]) < float64(settled.fewest)*(1-c.maxShrink)*(1-c.maxShrink)
		if last.most < guardEntries || !few {
			continue
		}
		when := "have no until="
		if h <= len(horizons) {
			when = fmt.Sprintf("last longer than %d hours", int(horizons[h-1].Hours()))
		}
		return fmt.Errorf("%w: of %d entries %d %s, and %d before; max_shrink is %s", ErrExpiring, n.Left[0], n.Left[h], when, last.fewest, c.percent())
	}
	return nil
}

// exceptions compares the number of exceptions. Each can cancel one entry at most, since it
// cancels only entries that are equally or less specific: "!com" cancels no "bulk.com".
func (c *comparison) exceptions(n sizes) error {
	before := spanOf(c.recent, left(0))
	if before.most < guardEntries {
		return nil
	}
	if before.fewest < guardEntries {
		before.fewest = c.recent[len(c.recent)-1].Left[0]
	}
	count := func(v *servedVersion) int { return v.Exceptions }
	had := spanOf(c.recent, count).most
	step := c.maxShrink * float64(before.fewest)
	if float64(n.Exceptions-had) > step || float64(n.Exceptions-spanOf(c.settled, count).most) > 2*step {
		return fmt.Errorf("%w: from %d to %d in a list of %d entries, and max_shrink is %s", ErrExceptions, had, n.Exceptions, before.fewest, c.percent())
	}
	return nil
}

// grown compares all entries. A list of less than guardEntries counts as one of so many, and
// one that never had an entry is a new one.
func (c *comparison) grown(n sizes) error {
	count := func(v *servedVersion) int { return v.Entries }
	had, settled := spanOf(c.recent, count).most, spanOf(c.settled, count).most
	if c.maxGrowth <= 0 || max(had, settled) == 0 {
		return nil
	}
	atLeast := ""
	if had < guardEntries {
		atLeast = fmt.Sprintf(" (a list of less than %d entries may grow to %s)", guardEntries, number(guardEntries*c.maxGrowth))
	}
	if float64(n.Entries) > float64(max(had, guardEntries))*c.maxGrowth {
		return fmt.Errorf("%w: from %d entries to %d, and max_growth is %s%s", ErrGrown, had, n.Entries, number(c.maxGrowth), atLeast)
	}
	if float64(n.Entries) > float64(max(settled, guardEntries))*c.maxGrowth*c.maxGrowth {
		return fmt.Errorf("%w: from %d entries to %d within a day, and max_growth is %s, twice a day at most", ErrGrown, settled, n.Entries, number(c.maxGrowth))
	}
	return nil
}

// percent returns max_shrink as the configuration has it.
func (c *comparison) percent() string { return fmt.Sprintf("%.4g%%", 100*c.maxShrink) }
