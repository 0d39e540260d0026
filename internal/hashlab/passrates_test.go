package hashlab

import (
	"context"
	"slices"
	"testing"

	"spamgate/blocklist/bloom"
	"spamgate/internal/disposable"
)

// TestPassRatesAndMessagesAtCapacity checks what every function lets pass, and the
// messages that hit, against plain filters that hold as many keys as their capacity
// is, and not those of the fullest load.
func TestPassRatesAndMessagesAtCapacity(t *testing.T) {
	p := mailExperiment(t, disposable.Domains()[:20_000])
	p.passes = true
	if p.full == len(p.loads)-1 {
		t.Fatal("no filter is fuller than the capacity: nothing could be mistaken")
	}
	for _, name := range []string{"classic", "seeded"} {
		s := subjectNamed(t, name, p.k)
		x, err := p.measure(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		f, err := s.make(p.seed, p.m)
		if err != nil {
			t.Fatal(err)
		}
		for i, split := range p.splits {
			filter, err := bloom.New(f)
			if err != nil {
				t.Fatal(err)
			}
			set := make([]bool, p.m)
			for _, key := range slices.Concat(split.steps[:p.full+1]...) {
				filter.Add(p.keys[key])
				for _, index := range f.AppendIndices(nil, p.keys[key]) {
					set[index] = true
				}
			}
			for j := range p.k {
				hits, trials := uint64(0), uint64(0)
				for q := 0; q < len(split.queries); q += passInterval {
					trials++
					if set[f.Index(j, p.keys[split.queries[q]])] {
						hits++
					}
				}
				if got := x.passes[j]; got.hits[i] != hits || got.trials[i] != trials {
					t.Errorf("%s, split %d, function %d: %d/%d pass, in the plain filter %d/%d", name, i, j, got.hits[i], got.trials[i], hits, trials)
				}
			}
			hits := uint64(0)
			for _, message := range p.messages.queries[i] {
				if slices.ContainsFunc(p.messages.keys[message], func(c int32) bool { return filter.MayContain(p.messages.candidates[c]) }) {
					hits++
				}
			}
			if got := x.messages.hits[i]; got != hits {
				t.Errorf("%s, split %d: %d messages hit, in the plain filter %d", name, i, got, hits)
			}
		}
	}
}
