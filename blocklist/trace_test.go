package blocklist

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist/verdict"
)

// TestTraceAgainstLookup: whatever the lists hold, whichever of them count, and
// whatever the filter is, a trace ends with the decision of a lookup, and its
// parts add up to it.
func TestTraceAgainstLookup(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, filter := range []Filter{
		{}, {Family: "classic:BP"}, {Kind: KindSharded}, {Kind: KindAuto}, {Kind: KindFuse, FPR: 0.01},
		{Kind: KindSized, FPR: 0.5, Entries: 1}, {Kind: KindCounting, Family: "weighted", FPR: 0.5, Entries: 1},
	} {
		var wrong uint64
		for range unlessShort(60, 15) {
			lists := randomLists(r)
			s := setWith(t, filter, lists, 1<<6) // small: many false positives
			for range 20 {
				_, address := randomText(r)
				for _, v := range []*View{s.Only(nil), s.Only([]string{lists[0].Name})} {
					for _, stage := range []verdict.Stage{verdict.Envelope, verdict.Header} {
						compareTrace(t, s, v, stage, address)
					}
				}
			}
			wrong += s.FalsePositives()
		}
		if wrong == 0 && filter.Kind == "" {
			t.Errorf("%v: the filter was never wrong: the test tests less than it should", filter)
		}
	}
}

// compareTrace compares a trace with the lookup, and with what it counts.
func compareTrace(t *testing.T, s *Set, v *View, stage verdict.Stage, address string) {
	t.Helper()
	a := parse(t, address)
	maybes, wrong := s.Maybes(), s.FalsePositives()
	want, err := v.Lookup(stage, a)
	if err != nil {
		t.Fatal(err)
	}
	maybes, wrong = s.Maybes()-maybes, s.FalsePositives()-wrong
	got, _, err := v.Trace(stage, a, FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Verdict, want) {
		t.Fatalf("%s, %s: the trace ends with %+v, the lookup with %+v", address, stage, got.Verdict, want)
	}
	matches := 0
	for i, k := range got.Keys {
		if int(k.Rank) != i {
			t.Errorf("%s: key %d has the rank %d", address, i, k.Rank)
		}
		if k.Skipped != "" {
			continue
		}
		if k.Maybe {
			maybes--
		}
		if k.FalsePositive {
			wrong--
		}
		for _, e := range k.Held {
			if e.Effect == IsMatch {
				matches++
			}
		}
	}
	if maybes != 0 || wrong != 0 || matches != len(want.Matches) {
		t.Errorf("%s, %s: the trace has %d maybes and %d false positives less than the lookup, and %d matches of %d",
			address, stage, maybes, wrong, matches, len(want.Matches))
	}
}

// TestTrace looks at one decision in all its parts.
func TestTrace(t *testing.T) {
	allowed := allowList("allowed", write(t, inDir(t, "allowed.txt"), "partner@bulk.example\n"))
	blocked := blockList("blocked", write(t, inDir(t, "blocked.txt"), "# of the house\nbulk.example  # bought\n!press@bulk.example\nx@bulk.example\n"))
	header := blockList("header", write(t, inDir(t, "header.txt"), "bulk.example\n"))
	header.Stages = verdict.Header
	s := build(t, fast(allowed, blocked, header))
	for _, tt := range []struct {
		address string
		stage   verdict.Stage
		want    []string
	}{
		{"partner@bulk.example", verdict.Envelope, []string{"partner@bulk.example: allowed match", "@bulk.example: kind", "bulk.example: blocked match, header not counted", "*.example: kind", "example: answered", "partner@: kind"}},
		{"press@bulk.example", verdict.Envelope, []string{"press@bulk.example: blocked exception", "@bulk.example: kind", "bulk.example: blocked less specific, header not counted", "*.example: kind", "example: no", "press@: kind"}},
		{"x@bulk.example", verdict.Header, []string{"x@bulk.example: blocked match", "@bulk.example: kind", "bulk.example: blocked less specific, header match", "*.example: kind", "example: no", "x@: kind"}},
		{"a@clean.example", verdict.Envelope, []string{"a@clean.example: no", "@clean.example: kind", "clean.example: no", "*.example: kind", "example: no", "a@: kind"}},
	} {
		trace, _, err := s.Only(nil).Trace(tt.stage, parse(t, tt.address), FindOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, k := range trace.Keys {
			what := "no"
			switch {
			case k.Skipped != "":
				what = string(k.Skipped)
			case k.Maybe:
				var parts []string
				for _, e := range k.Held {
					parts = append(parts, e.Match.List+" "+string(e.Effect))
				}
				what = strings.Join(parts, ", ")
			}
			got = append(got, k.Key+": "+what)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.address, got, tt.want)
		}
	}
}

// TestTraceSettled: once every list has its answer nothing more is asked.
func TestTraceSettled(t *testing.T) {
	s := build(t, fast(blockList("blocked", write(t, inDir(t, "blocked.txt"), "x@bulk.example\nbulk.example\n"))))
	trace, _, err := s.Only(nil).Trace(verdict.Envelope, parse(t, "x@bulk.example"), FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if k := trace.Keys[2]; k.Key != "bulk.example" || k.Skipped != AllSettled || !k.Maybe || k.Held != nil {
		t.Errorf("%+v", k)
	}
}

// TestTraceExpired: an entry that has ended is shown as such, and matches nobody.
func TestTraceExpired(t *testing.T) {
	until := func(d time.Duration) string {
		return " # until=" + time.Now().Add(d).UTC().Format(time.RFC3339)
	}
	set := setOf(t, []plainList{{List{Name: "a", Action: verdict.Reject}, []string{
		"example.com" + until(-time.Minute), "example.net" + until(time.Hour),
	}}}, 1<<20)
	for address, want := range map[string]Effect{"u@example.com": IsExpired, "u@example.net": IsMatch} {
		trace, _, err := set.Only(nil).Trace(verdict.Envelope, parse(t, address), FindOptions{})
		must(t, err)
		for _, key := range trace.Keys {
			for _, e := range key.Held {
				if e.Effect != want {
					t.Errorf("%s: %s is %q, want %q", address, e.Entry, e.Effect, want)
				}
				want = ""
			}
		}
		if want != "" {
			t.Errorf("%s: no entry is shown", address)
		}
	}
}
