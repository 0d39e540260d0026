package hashlab

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"spamgate/internal/disposable"
)

// smallCorpora returns two corpora of some thousand keys.
func smallCorpora(tb testing.TB) []*Corpus {
	tb.Helper()
	return []*Corpus{
		{Name: "domains", What: "the begin of the real list", Keys: disposable.Domains()[:4000]},
		made(tb, defaultSources(1, 3000)[3]),
	}
}

// runUntil returns the report of a run that is interrupted when the named step
// begins.
func runUntil(tb testing.TB, o Options, step string) *Report {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o.Progress = func(_ float64, what string) {
		if what == step {
			cancel()
		}
	}
	r, err := Run(ctx, o)
	if err != nil {
		tb.Fatal(err)
	}
	if !r.Interrupted {
		tb.Fatalf("the run did not come to %q", step)
	}
	return r
}

// untilSpeed returns a report with all numbers that depend on the manifest alone.
func untilSpeed(tb testing.TB, o Options) *Report { return runUntil(tb, o, "speed") }

func TestRunRepeats(t *testing.T) {
	families := []string{"classic", "double", "weighted"}
	encode := func(seed uint64) string {
		text, err := json.Marshal(untilSpeed(t, Options{Families: families, Corpora: smallCorpora(t), Seed: seed}))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := encode(1)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if alone := encode(1); alone != first {
		t.Error("on one core the numbers are others")
	}
	runtime.GOMAXPROCS(3)
	if three := encode(1); three != first {
		t.Error("on three cores the numbers are others")
	}
	if other := encode(2); other == first {
		t.Error("another seed gives the same numbers")
	}
}

// TestRunIsWhole runs to the end, and looks whether all parts are there.
func TestRunIsWhole(t *testing.T) {
	last, steps := -1.0, 0
	r, err := Run(context.Background(), Options{
		Families: []string{"classic:RS,BP", "seeded"}, Corpora: smallCorpora(t)[:1], Seed: 3, Version: "v1", Flags: []string{"--seed=3"},
		Progress: func(done float64, what string) {
			if done < last || done > 1 || what == "" {
				t.Errorf("progress %v after %v: %q", done, last, what)
			}
			last = done
			steps++
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if last != 1 || steps < 10 || r.Interrupted {
		t.Errorf("progress ended at %v after %d steps, interrupted %v", last, steps, r.Interrupted)
	}
	var subjects []string
	for _, x := range r.FPR {
		if x.Filters < 20 || x.Trials == 0 || x.Corpus != "domains" || x.Rate.Low > x.Rate.Value || x.Rate.Value > x.Rate.High {
			t.Errorf("%+v", x)
		}
		if x.Load == 1 {
			subjects = append(subjects, x.Name)
		}
	}
	if want := []string{"classic:RS,BP", Ideal, XXH3, "seeded", Ideal, XXH3, "RS", "BP", Ideal, XXH3}; !slices.Equal(subjects, want) {
		t.Errorf("rates of %v, want %v", subjects, want)
	}
	// Functions: 2 and 11, each with two controls.
	if len(r.Messages) != 6 || len(r.PassRates) != 3*2+3*11 {
		t.Errorf("%d rates per message, %d pass rates", len(r.Messages), len(r.PassRates))
	}
	for _, rows := range []int{len(r.Collisions), len(r.Uniformity), len(r.Avalanche), len(r.Agreement), len(r.Speed)} {
		if rows == 0 {
			t.Errorf("a part is empty: %d collisions, %d uniformity, %d avalanche, %d agreement, %d speed",
				len(r.Collisions), len(r.Uniformity), len(r.Avalanche), len(r.Agreement), len(r.Speed))
			break
		}
	}
	m := r.Manifest
	if m.Version != "v1" || m.Go != runtime.Version() || m.CPU == "" || m.ClockGHz <= 0 || m.Seed != 3 || m.PublicKey != PublicKey() ||
		!slices.Equal(m.Flags, []string{"--seed=3"}) || len(m.Corpora) != 1 || m.Corpora[0].Keys != 4000 || len(m.Corpora[0].SHA256) != 64 {
		t.Errorf("manifest %+v", m)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err) // an infinity, say
	}
}

func TestRunInterrupted(t *testing.T) {
	r, err := Run(cancelled(), Options{})
	if err != nil || !r.Interrupted || len(r.FPR) != 0 {
		t.Errorf("interrupted before the begin: %+v, %v", r, err)
	}
	text, err := json.Marshal(r)
	if err != nil || strings.Contains(string(text), "null") {
		t.Errorf("%s, %v", text, err)
	}
	r = runUntil(t, Options{Families: []string{"classic", "digest"}, Corpora: smallCorpora(t), Seed: 1}, "domains, k = 11, 2^15 bits: "+Ideal)
	var names []string
	for _, x := range r.FPR {
		if x.Load == 1 {
			names = append(names, x.Name)
		}
	}
	if want := []string{"classic", "digest"}; !slices.Equal(names, want) || len(r.Manifest.Corpora) != 1 {
		t.Errorf("rates of %v, want %v; corpora %v", names, want, r.Manifest.Corpora)
	}
}

func TestRunRefuses(t *testing.T) {
	few := &Corpus{Name: "few", Keys: disposable.Domains()[:MinKeys-1]}
	enough := &Corpus{Name: "enough", Keys: disposable.Domains()[:MinKeys]}
	for _, c := range []struct {
		name    string
		options Options
		says    []string
	}{
		{"an unknown family", Options{Families: []string{"md5"}}, []string{`"md5"`, "classic", "digest", "seeded"}},
		{"no name", Options{Families: []string{""}}, []string{"classic"}},
		{"an empty corpus", Options{Corpora: []*Corpus{{Name: "none"}}}, []string{"none", "empty", "1000"}},
		{"few keys", Options{Corpora: []*Corpus{few}}, []string{"few", "999", "1000"}},
		{"a corpus twice", Options{Corpora: []*Corpus{enough, enough}}, []string{"enough", "twice"}},
	} {
		r, err := Run(context.Background(), c.options)
		if err == nil || r != nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		for _, says := range c.says {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %q does not say %q", c.name, err, says)
			}
		}
	}
}

func TestGroups(t *testing.T) {
	for _, c := range []struct {
		families []string
		want     string // k: subjects
	}{
		{nil, "11: classic digest double double:murmur3 seeded ideal xxh3; 9: classic9 ideal xxh3; 7: weighted double ideal xxh3; " +
			"1: RS JS PJW ELF BKDR SDBM DJB DEK BP FNV AP ideal xxh3"},
		{[]string{"classic:AP,RS", "classic9", "classic9"}, "2: classic:AP,RS ideal xxh3; 9: classic9 ideal xxh3; 1: RS JS PJW BKDR SDBM DJB DEK FNV AP ideal xxh3"},
		{[]string{"classic:BP"}, "1: BP ideal xxh3"},
		{[]string{"weighted:3", "seeded:0", "seeded", "seeded:9"}, "1: weighted:3 ideal xxh3; 11: seeded seeded:9 ideal xxh3"},
		{[]string{"double"}, "11: double ideal xxh3"},
	} {
		families, err := choose(c.families)
		if err != nil {
			t.Fatal(err)
		}
		all, err := groups(families)
		if err != nil {
			t.Fatal(err)
		}
		if got := describe(all); got != c.want {
			t.Errorf("%v:\n%s, want\n%s", c.families, got, c.want)
		}
	}
}

// describe writes groups as "k: subjects; k: subjects".
func describe(all []group) string {
	var parts []string
	for _, g := range all {
		names := []string{strconv.Itoa(g.k) + ":"}
		for _, s := range g.subjects {
			names = append(names, s.Name)
		}
		parts = append(parts, strings.Join(names, " "))
	}
	return strings.Join(parts, "; ")
}
