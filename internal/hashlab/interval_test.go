package hashlab

import (
	"encoding/json"
	"math"
	"testing"
)

var inf = math.Inf(1)

// TestIntervalJSON wants null for what is unknown, and the interval back.
func TestIntervalJSON(t *testing.T) {
	for _, c := range []struct {
		interval Interval
		text     string
	}{
		{Interval{}, `{"value":0,"low":0,"high":0}`},
		{Interval{0.5, 0.25, 0.75}, `{"value":0.5,"low":0.25,"high":0.75}`},
		{Interval{0, 0, 3e-7}, `{"value":0,"low":0,"high":3e-7}`},
		{Interval{inf, 4.46, inf}, `{"value":null,"low":4.46,"high":null}`},
	} {
		text, err := json.Marshal(c.interval)
		if err != nil || string(text) != c.text {
			t.Errorf("%v: %s, %v, want %s", c.interval, text, err, c.text)
		}
		var back Interval
		if err := json.Unmarshal(text, &back); err != nil || back != c.interval {
			t.Errorf("%s: %v, %v, want %v", text, back, err, c.interval)
		}
	}
	var i Interval
	if err := json.Unmarshal([]byte(`{"low":1}`), &i); err != nil || i != (Interval{inf, 1, inf}) {
		t.Errorf("what is missing: %v, %v", i, err)
	}
	if err := json.Unmarshal([]byte(`{"value":"1"}`), &i); err == nil {
		t.Error("a text was read as a number")
	}
	if text, err := json.Marshal(Interval{math.NaN(), 0, 1}); err != nil || string(text) != `{"value":null,"low":0,"high":1}` {
		t.Errorf("no number: %s, %v", text, err)
	}
}

// zeroHits returns a report of one row without a hit.
func zeroHits() *Report {
	counts := newTally(20, 5)
	for i := range counts.trials {
		counts.trials[i] = 5
	}
	return &Report{FPR: []FPRRow{fprRow(FPRRow{Corpus: "c", Subject: Subject{"f", KindFamily}, M: 1024, K: 3, N: 10}, counts, []uint8{20, 20, 20, 20, 20}, 20*100)}}
}

// TestZeroHitsForPrograms wants consistent limits without hits: low ≤ value ≤ high if
// they are known, and null if not.
func TestZeroHitsForPrograms(t *testing.T) {
	r := zeroHits()
	if k := r.FPR[0].EffectiveK; k.Low <= 0 || k.Low > k.Value || k.Value > k.High {
		t.Errorf("effective k %+v", k)
	}
	out, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		FPR []struct {
			Rate, Effective_K map[string]*float64
		}
	}
	if err := json.Unmarshal(out, &back); err != nil {
		t.Fatal(err)
	}
	if k := back.FPR[0].Effective_K; len(k) != 3 || k["value"] != nil || k["high"] != nil || k["low"] == nil || *k["low"] != r.FPR[0].EffectiveK.Low {
		t.Errorf("effective_k in JSON: %v", k)
	}
	if rate := back.FPR[0].Rate; *rate["value"] != 0 || *rate["low"] != 0 || *rate["high"] != r.FPR[0].Rate.High {
		t.Errorf("rate in JSON: %v", rate)
	}
}
