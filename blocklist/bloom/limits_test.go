package bloom

import (
	"math"
	"testing"
)

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		hits, trials int
		low, high    float64
	}{
		{0, 0, 0, 1},
		{0, 1000, 0, 0.0038268},
		{1, 10, 0.0178762, 0.4041500}, // as published tables have it
		{5, 10, 0.2365931, 0.7634069},
		{1000, 1000, 0.9961732, 1},
		{65, 1_000_000, 0.0000510020, 0.0000828402},
	} {
		low, high := Limits(c.hits, c.trials)
		if math.Abs(low-c.low) > 1e-6*max(c.low, 0.1) || math.Abs(high-c.high) > 1e-6*max(c.high, 0.1) {
			t.Errorf("%d of %d: %.8v to %.8v, want %v to %v", c.hits, c.trials, low, high, c.low, c.high)
		}
	}
}
