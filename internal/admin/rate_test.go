package admin

import (
	"encoding/json"
	"math"
	"testing"
)

func TestRate(t *testing.T) {
	for rate, want := range map[Rate]string{0: "0", 1.5e-5: "0.000015", 1e-20: "1e-20"} {
		text, err := json.Marshal(rate)
		if err != nil || string(text) != want {
			t.Errorf("%v: %s, %v; want %s", rate, text, err, want)
		}
		var read Rate
		if err := json.Unmarshal(text, &read); err != nil || read != rate {
			t.Errorf("%s read again: %v, %v", text, read, err)
		}
	}
	text, err := json.Marshal(Filter{FPR: Rate(math.NaN())})
	if err != nil {
		t.Fatal(err)
	}
	var read Filter
	if err := json.Unmarshal(text, &read); err != nil || !math.IsNaN(float64(read.FPR)) {
		t.Errorf("%s read again: %v, %v", text, read.FPR, err)
	}
}
