package blocklist

import (
	"math"
	"testing"
)

// What is said beforehand is about what a filter turns out to cost.
func TestCost(t *testing.T) {
	if testing.Short() {
		t.Skip("fills large filters")
	}
	versions := []*Index{manyDomains(t, 120_000), manyDomains(t, 70_000), noEntries}
	for _, f := range append(everyKind(), Filter{Kind: KindSharded, Entries: 40_000_000}, Filter{Kind: KindFuse, FPR: 1e-3}) {
		cost, err := f.Cost(120_000, 70_000, 0)
		must(t, err)
		var stats SetStats
		makeSet(t, layoutOf(t, f), versions).filter.describe(&stats)
		if off := math.Abs(float64(cost.Bytes)/float64(stats.FilterBytes) - 1); off > 0.1 {
			t.Errorf("%v: %d bytes, and it was to be %d", f, stats.FilterBytes, cost.Bytes)
		}
		// The lists share 70,000 keys, which sets fewer bits.
		if stats.FPR > cost.FPR*1.3 {
			t.Errorf("%v: a rate of %g, and it was to be %g", f, stats.FPR, cost.FPR)
		}
		if f.Kind != KindFuse && stats.Shards != cost.Shards {
			t.Errorf("%v: %d shards, and it was to be %d", f, stats.Shards, cost.Shards)
		}
	}
	if _, err := (Filter{Kind: KindSized}).Cost(1 << 33); err == nil {
		t.Error("a bitmap that is too large: no error")
	}
}
