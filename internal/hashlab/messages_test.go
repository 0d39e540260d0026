package hashlab

import (
	"bytes"
	"context"
	"math"
	"slices"
	"testing"

	"spamgate/internal/disposable"
)

// mailExperiment returns an experiment with messages.
func mailExperiment(tb testing.TB, keys [][]byte) *experiment {
	tb.Helper()
	p, err := newExperiment(context.Background(), &Corpus{Name: "mail", Keys: keys}, newShape(len(keys), 1<<14, 11, false), 1)
	if err != nil {
		tb.Fatal(err)
	}
	p.messages = newMessages(p, 1000)
	return p
}

// TestMessagesAreAbsent holds that a split is asked for messages only of which no
// candidate key is a member, and for nearly all of those.
func TestMessagesAreAbsent(t *testing.T) {
	p := mailExperiment(t, disposable.Domains()[:20_000])
	x := p.messages
	for i, s := range p.splits {
		member := make(map[string]bool)
		for _, step := range s.steps {
			for _, key := range step {
				member[string(p.keys[key])] = true
			}
		}
		var want []int32
		for m, keys := range x.keys {
			if !slices.ContainsFunc(keys, func(c int32) bool { return member[string(x.candidates[c])] }) {
				want = append(want, int32(m))
			}
		}
		if !slices.Equal(x.queries[i], want) || len(want) < len(x.keys)/2 || len(want) == len(x.keys) {
			t.Errorf("split %d: asked for %d messages, want %d of %d", i, len(x.queries[i]), len(want), len(x.keys))
		}
	}
	for i, times := range x.asked {
		n := 0
		for _, queries := range x.queries {
			if slices.Contains(queries, int32(i)) {
				n++
			}
		}
		if n != int(times) {
			t.Errorf("message %d: asked for %d times, counted %d", i, n, times)
		}
	}
}

// TestMessageKeys holds that a message's keys are the candidates of one to three
// addresses, each key once.
func TestMessageKeys(t *testing.T) {
	p := mailExperiment(t, disposable.Domains()[:20_000])
	if len(p.messages.keys) < 990 {
		t.Errorf("%d messages of 1000", len(p.messages.keys))
	}
	for i, keys := range p.messages.keys {
		addresses := 0
		sorted := slices.Clone(keys)
		slices.Sort(sorted)
		if len(slices.Compact(sorted)) != len(keys) {
			t.Errorf("message %d: a key stands twice", i)
		}
		for _, c := range keys {
			key := p.messages.candidates[c]
			if pos := bytes.IndexByte(key, '@'); pos > 0 && pos < len(key)-1 && !bytes.Contains(key[:pos], []byte("+")) {
				addresses++
			}
		}
		if addresses < 1 || addresses > 3 || len(keys) < 5 {
			t.Errorf("message %d: %d addresses, %d keys", i, addresses, len(keys))
		}
	}
}

func TestNoMessagesWithoutDomains(t *testing.T) {
	for _, source := range defaultSources(1, 20_000) {
		c := made(t, source)
		p := mailExperiment(t, c.Keys)
		want := c.Name == realList || c.Name == "many-domains" || c.Name == "short-domains"
		if got := p.messages != nil; got != want {
			t.Errorf("%s: messages %v, want %v", c.Name, got, want)
		}
	}
}

func TestMessageRow(t *testing.T) {
	x := &messages{keys: [][]int32{{0, 1}, {0, 1, 2, 3}, {4}}, asked: []uint8{2, 2, 0}}
	p := &experiment{shape: shape{loads: []load{{1, 10}}}, splits: make([]*split, 2)}
	counts := &tally{hits: []uint64{1, 0}, trials: []uint64{2, 2}, byUnit: []uint8{1, 0, 0}}
	r := x.row(p, Subject{"s", KindFamily}, counts, 0.1)
	if r.Hits != 1 || r.Messages != 4 || r.KeysAMail != 3 || r.Rate.Value != 0.25 {
		t.Errorf("%+v", r)
	}
	if want := ((1 - 0.9*0.9) + (1 - 0.9*0.9*0.9*0.9)) / 2; math.Abs(r.FromPerKey-want) > 1e-12 {
		t.Errorf("from the rate per key: %v, want %v", r.FromPerKey, want)
	}
}

// TestMessagesAndPassRatesOfEverything: in a filter whose bits are all set every
// message and every function hits.
func TestMessagesAndPassRatesOfEverything(t *testing.T) {
	p := mailExperiment(t, disposable.Domains()[:20_000])
	p.passes = true
	s := subjectNamed(t, "classic", 11)
	f, err := s.make(0, p.m)
	if err != nil {
		t.Fatal(err)
	}
	all, err := tabulate(context.Background(), f, p.allKeys())
	if err != nil {
		t.Fatal(err)
	}
	for _, full := range []bool{false, true} {
		x := p.newMeasurement(f)
		bits := newBitmap(p.m)
		if full {
			for i := range bits {
				bits[i] = math.MaxUint64
			}
		}
		x.pass(p.splits[0], 0, all, bits)
		p.messages.ask(x.messages, 0, all, len(p.keys), bits)
		for _, counts := range append(x.passes, x.messages) {
			want := uint64(0)
			if full {
				want = counts.trials[0]
			}
			if counts.trials[0] == 0 || counts.hits[0] != want {
				t.Errorf("bits set %v: %d hits in %d trials", full, counts.hits[0], counts.trials[0])
			}
		}
	}
}
