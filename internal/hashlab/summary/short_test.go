package summary

import (
	"slices"
	"strings"
	"testing"

	"spamgate/internal/hashlab"
)

// rateRow returns a row in the fullest filters whose rate is so many times the
// formula's.
func rateRow(name, corpus string, times float64) hashlab.FPRRow {
	const formula, k = 0.005, 4
	return hashlab.FPRRow{Corpus: corpus, Subject: hashlab.Subject{Name: name, Kind: hashlab.KindFamily}, M: 1 << 16, K: k, N: 11356, Filters: 20,
		Hits: uint64(1e6 * formula * times), Trials: 1e6, Formula: formula, Fill: 0.5, ExpectedFill: 0.5,
		EffectiveK: hashlab.Interval{Value: k / times, Low: 0.99 * k / times, High: 1.01 * k / times},
		Rate:       hashlab.Interval{Value: formula * times, Low: 0.99 * formula * times, High: 1.01 * formula * times}}
}

// TestShort wants each sentence to follow the numbers.
func TestShort(t *testing.T) {
	r := &hashlab.Report{
		FPR: []hashlab.FPRRow{
			rateRow("bad", "first", 1.3), rateRow("bad", "second", 3.2),
			rateRow("good", "first", 1), rateRow("good", "second", 1.002),
		},
		PassRates: []hashlab.PassRow{
			{Family: "bad", K: 4, Corpus: "first", Hash: "RS", Rate: hashlab.Interval{Value: 0.5, Low: 0.49, High: 0.51}, Fill: 0.5},
			{Family: "bad", K: 4, Corpus: "first", Hash: "BP", Rate: hashlab.Interval{Value: 0.99, Low: 0.98, High: 1}, Fill: 0.5},
		},
		Speed: []hashlab.SpeedRow{
			{Subject: hashlab.Subject{Name: "bad", Kind: hashlab.KindFamily}, K: 4, KeyBytes: TypicalKeyBytes, What: hashlab.AllIndices, NsMedian: 120},
			{Subject: hashlab.Subject{Name: "good", Kind: hashlab.KindFamily}, K: 4, KeyBytes: TypicalKeyBytes, What: hashlab.AllIndices, NsMedian: 21.5},
		},
	}
	got := Short(r)
	want := []string{"2 families of hashes choose its bits, over 2 kinds of keys", "Use good: ", "bad up to 3.20 times (second)", "cost time: BP in bad.", "33 bytes: good 21.5 and bad 120."}
	if len(got) != len(want) {
		t.Fatalf("%d sentences, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("sentence %d: %s\nwant %s", i+1, got[i], want[i])
		}
	}

	r.FPR, r.PassRates, r.Speed = r.FPR[:2], nil, nil
	if got := Short(r); len(got) != 3 || !strings.HasPrefix(got[1], "No family was shown to be wrong as rarely") {
		t.Errorf("with a bad family alone: %q", got)
	}
	r.FPR = []hashlab.FPRRow{rateRow("good", "first", 1)}
	if got := Short(r); len(got) != 2 || !strings.Contains(got[0], "1 family of hashes chooses its bits, over 1 kind of keys") {
		t.Errorf("with a good family alone: %q", got)
	}
	if got := Short(new(hashlab.Report)); got != nil {
		t.Errorf("of nothing: %q", got)
	}
}

// TestOverviewsOrder wants the families that keep to the formula first, and then
// the better before the worse.
func TestOverviewsOrder(t *testing.T) {
	r := &hashlab.Report{}
	for name, times := range map[string]float64{"worst": 5, "worse": 2, "good": 1} {
		r.FPR = append(r.FPR, rateRow(name, "first", times))
	}
	var names []string
	for _, o := range Overviews(r) {
		names = append(names, o.Label)
	}
	if !slices.Equal(names, []string{"good", "worse", "worst"}) {
		t.Errorf("got %v", names)
	}
}
