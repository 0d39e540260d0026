package gate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"spamgate/blocklist/judge"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/limit"
)

// counter is a counter's value.
func counter(t testing.TB, c prometheus.Metric) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

// TestDecided counts each sort of verdict.
func TestDecided(t *testing.T) {
	m := newMetrics()
	match := func(list string, action verdict.Action) verdict.Match {
		return verdict.Match{List: list, Action: action}
	}
	verdicts := []verdict.Verdict{
		{},
		{},
		{Action: verdict.Reject, Match: match("blocked", verdict.Reject)},
		{Match: match("allowed", verdict.Accept)},
		{Monitored: []verdict.Match{match("tried", verdict.Accept), match("blocked", verdict.Reject)}},
		{Action: verdict.Tag, Match: match("blocked", verdict.Tag), Monitored: []verdict.Match{match("tried", verdict.Accept)}},
	}
	for i := range verdicts {
		m.decided(&verdict.Query{Stage: verdict.Header}, &verdicts[i], nil)
	}
	m.decided(&verdict.Query{Stage: verdict.Envelope}, &verdict.Verdict{}, errors.New("no address"))
	for range 2 {
		m.decided(&verdict.Query{Stage: verdict.Envelope}, &verdict.Verdict{}, fmt.Errorf("damaged: %w", verdict.ErrNoAnswer))
	}
	for _, want := range []struct {
		stage, list, action string
		n                   float64
	}{
		{"header", "", "accept", 3},
		{"header", "blocked", "reject", 1},
		{"header", "blocked", "tag", 1},
		{"header", "blocked", "monitor", 1},
		{"header", "allowed", "accept", 1},
		{"header", "tried", "monitor", 2},
		{"envelope", "", "accept", 0},
	} {
		if got := counter(t, m.decisions.WithLabelValues(want.stage, want.list, want.action)); got != want.n {
			t.Errorf("%s, list %q, %s: %v, want %v", want.stage, want.list, want.action, got, want.n)
		}
	}
	for cause, want := range map[string]float64{causeAddress: 1, causeLists: 2} {
		if got := counter(t, m.failures.WithLabelValues(cause)); got != want {
			t.Errorf("%v failures because of %s, want %v", got, cause, want)
		}
	}
}

// TestMetered counts every verdict and times some, whichever place in a message
// they have: with four lookups in each, all four sorts.
func TestMetered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "blocked.txt")
	if err := os.WriteFile(path, []byte("example.com\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	set, _, err := store.Build(context.Background(), store.Config{
		Lists: []store.List{{Name: "blocked", Paths: []string{path}, Action: verdict.Reject}},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := newMetrics()
	const lookups = 4000
	timed := func() uint64 {
		var d dto.Metric
		if err := m.lookup.Write(&d); err != nil {
			t.Fatal(err)
		}
		return d.GetHistogram().GetSampleCount()
	}
	var sorts [4]uint64
	for i := range 4 * lookups {
		before := timed()
		if _, err := (&metered{judge.New(set.Only(nil)), m}).Judge(t.Context(), nil, verdict.Query{Stage: verdict.Header, Address: "someone@example.org"}); err != nil {
			t.Fatal(err)
		}
		sorts[i%4] += timed() - before
	}
	if got := counter(t, m.clean[verdict.Header]); got != 4*lookups {
		t.Errorf("%v counted, want %d", got, 4*lookups)
	}
	for i, n := range sorts { // 250 of each are expected, give or take 15
		if n < lookups/timedShare/4 || n > lookups/timedShare*4 {
			t.Errorf("of %d lookups at place %d of a message %d were timed", lookups, i, n)
		}
	}
}

// TestMetricsListener has all counts of a listener there before anything happens.
func TestMetricsListener(t *testing.T) {
	m := newMetrics()
	m.addListener("smtp")
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, f := range families {
		found[f.GetName()] = len(f.Metric)
	}
	for name, n := range map[string]int{
		"spamgate_sessions_total": 1, "spamgate_sessions_open": 1,
		"spamgate_messages_total": len(smtpfilter.Outcomes()), "spamgate_decisions_total": 2,
		"spamgate_recipients_total": len(smtpfilter.RecipientOutcomes()), "spamgate_auth_total": len(smtpfilter.AuthOutcomes()),
		"spamgate_limited_total": len(limit.Kinds()),
	} {
		if found[name] != n {
			t.Errorf("%s has %d series, want %d", name, found[name], n)
		}
	}
}

// BenchmarkMetered is what counting and timing add to the lookup of a sender whom
// no list knows, and to that of one who is listed.
func BenchmarkMetered(b *testing.B) {
	path := filepath.Join(b.TempDir(), "blocked.txt")
	var list strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&list, "w%d.example\n", i)
	}
	if err := os.WriteFile(path, []byte(list.String()), 0o644); err != nil {
		b.Fatal(err)
	}
	set, _, err := store.Build(context.Background(), store.Config{
		Lists: []store.List{{Name: "blocked", Paths: []string{path}, Action: verdict.Reject}},
	})
	if err != nil {
		b.Fatal(err)
	}
	plain := judge.New(set.Only(nil))
	for _, sender := range []struct{ name, address string }{
		{"clean", "someone@mail.example.org"}, {"listed", "someone@w777.example"},
	} {
		for _, j := range []struct {
			name  string
			judge verdict.Judge
		}{{"plain", plain}, {"metered", &metered{plain, newMetrics()}}} {
			b.Run(sender.name+"/"+j.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := j.judge.Judge(b.Context(), nil, verdict.Query{Stage: verdict.Envelope, Address: sender.address}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
