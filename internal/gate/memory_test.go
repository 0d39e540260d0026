package gate

import (
	"math"
	"testing"
)

func TestGCPercentFor(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		inUse uint64
		want  int
	}{
		{0, 800}, {4 * mib, 800}, {32 * mib, 100}, {70 * mib, 45}, {92 * mib, 35}, {10_000 * mib, 35}, {math.MaxUint64, 35},
	} {
		if got := gcPercentFor(tt.inUse); got != tt.want {
			t.Errorf("%d bytes in use: %d%%, want %d%%", tt.inUse, got, tt.want)
		}
	}
	for inUse := uint64(4 * mib); inUse < 1<<40; inUse += inUse / 7 {
		garbage := float64(inUse) * float64(gcPercentFor(inUse)) / 100
		if most := max(garbageFloor, float64(inUse)*gcPercent/100); garbage > most || garbage < 0.85*most {
			t.Errorf("%d bytes in use: %.0f of garbage, want %.0f", inUse, garbage, most)
		}
	}
}
