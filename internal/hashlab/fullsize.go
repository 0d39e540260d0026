package hashlab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"spamgate/blocklist/bloom"
)

// fullSizeCorpus is the name of the corpus of the measurement at full size.
const fullSizeCorpus = "full-size"

// fullSizeFilters is how many filters of full size each subject gets. Unlike splits
// of a corpus they are independent, each with addresses of its own.
const fullSizeFilters = 20

// fullSize is a measurement near the capacity of large filters, with keys that are
// generated when needed and never stored.
type fullSize struct {
	m        uint64
	members  []int // numbers of members at which the queries are looked up, rising
	queries  int   // absent keys
	seed     uint64
	progress progressFunc // called after each filter
}

// daemonSize returns the measurement of the full run: the daemon's 2^28 bits with
// ten million keys, and with 16.9 million, the capacity at k = 11.
func daemonSize(seed uint64) fullSize {
	return fullSize{m: bloom.ClassicBits, members: []int{10_000_000, 16_900_000}, queries: 1_500_000, seed: seed}
}

// fullSizeDefaults are the default families that are measured at full size, beside
// the controls.
var fullSizeDefaults = []string{"classic", "classic9", "double"}

// fullSizeSubjects returns the families, and both controls for each k.
func fullSizeSubjects(o Options, all []group) []subject {
	var subjects []subject
	for _, g := range all {
		some := false
		for _, s := range g.subjects {
			wanted := s.Kind == KindFamily && (len(o.Families) > 0 || slices.Contains(fullSizeDefaults, s.Name) && g.k >= 9)
			some = some || wanted
			if wanted || some && s.Kind == KindControl { // controls come last in a group
				subjects = append(subjects, s)
			}
		}
	}
	return subjects
}

// keys returns how many addresses one filter needs.
func (z fullSize) keys() int { return z.members[len(z.members)-1] + z.queries }

// addresses returns the addresses of one filter: the members from 0 on, and the
// queries after the last member.
func (z fullSize) addresses(filter int) *addresses {
	return newAddresses(stream(z.seed, fullSizeCorpus, filter).Uint64(), manyDomains)
}

// info returns the description of the addresses of all filters for the manifest.
func (z fullSize) info(ctx context.Context) (CorpusInfo, error) {
	what := fmt.Sprintf("generated addresses at 20,000 domains, others for each of %d filters", fullSizeFilters)
	info := newCorpusInfo(fullSizeCorpus, what, func(yield func([]byte) bool) {
		var key []byte
		for filter := range fullSizeFilters {
			z.progress.part(filter, fullSizeFilters)
			all := z.addresses(filter)
			for i := range z.keys() {
				if key = all.append(key[:0], uint64(i)); stopped(ctx, i) || !yield(key) {
					return
				}
			}
		}
	})
	return info, ctx.Err()
}

// measure fills the filters of one subject, as the daemon does, and returns a row
// for each number of members.
func (z fullSize) measure(ctx context.Context, s subject) ([]FPRRow, error) {
	var (
		tallies = make([]*tally, len(z.members))
		ones    = make([][fullSizeFilters]uint64, len(z.members))
		failed  = make([]error, fullSizeFilters)
	)
	for i := range tallies {
		tallies[i] = newTally(fullSizeFilters, 0)
	}
	var mu sync.Mutex
	done := 0
	err := parallel(ctx, fullSizeFilters, func() func(int) {
		return func(i int) {
			failed[i] = z.filter(ctx, s, i, func(load int, set, hits uint64) {
				ones[load][i] = set
				tallies[load].hits[i], tallies[load].trials[i] = hits, uint64(z.queries)
			})
			mu.Lock()
			defer mu.Unlock()
			done++
			z.progress.part(done, fullSizeFilters)
		}
	})
	if err = errors.Join(append(failed, err)...); err != nil {
		return nil, err
	}
	var rows []FPRRow
	for load, n := range z.members {
		set := uint64(0)
		for _, bit := range ones[load] {
			set += bit
		}
		rows = append(rows, fprRow(FPRRow{
			Corpus: fullSizeCorpus, Subject: s.Subject, M: z.m, K: s.k, N: n,
			Load: float64(n) / float64(capacity(z.m, s.k)), FullSize: true,
		}, tallies[load], nil, set))
	}
	return rows, nil
}

// fullSizeBatch is how many addresses are generated at a time.
const fullSizeBatch = 1 << 10

// filter fills the i-th filter, and at each number of members calls result with
// its set bits and how many of the queries it may contain.
func (z fullSize) filter(ctx context.Context, s subject, i int, result func(load int, set, hits uint64)) error {
	f, err := s.make(stream(z.seed, fullSizeCorpus, s.Name, s.k, i).Uint64(), z.m)
	if err != nil {
		return err
	}
	filter, err := bloom.New(f)
	if err != nil {
		return err
	}
	addresses := z.addresses(i)
	batch := make([][]byte, fullSizeBatch)
	each := func(from, to int, do func(keys [][]byte)) error {
		for from < to {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			keys := batch[:min(len(batch), to-from)]
			for j := range keys {
				keys[j] = addresses.append(keys[j][:0], uint64(from+j))
			}
			do(keys)
			from += len(keys)
		}
		return nil
	}
	members, last := 0, z.members[len(z.members)-1]
	for load, n := range z.members {
		if err := each(members, n, filter.AddAll); err != nil {
			return err
		}
		members = n
		hits := uint64(0)
		if err := each(last, last+z.queries, func(keys [][]byte) {
			for _, key := range keys {
				if filter.MayContain(key) {
					hits++
				}
			}
		}); err != nil {
			return err
		}
		result(load, filter.SetBits(), hits)
	}
	return nil
}
