package blocklist

import (
	"fmt"

	"spamgate/blocklist/bloom"
)

// describe fills in what [SetStats] says of the filter.
func (f *setFilter) describe(stats *SetStats) {
	var similar []Similar
	if p := f.probed(); p != nil {
		similar = p.similar
	}
	f.describeWith(stats, similar)
}

// describeWith fills in what [SetStats] says of the filter, if this is what was measured
// with changed entries; nil if nothing was.
func (f *setFilter) describeWith(stats *SetStats, similar []Similar) {
	stats.Kind = f.layout.Kind
	stats.Capacity = float64(f.capacity)
	stats.Keys = f.keys
	switch {
	case f.bitmaps != nil:
		b := f.bitmaps
		stats.Family, stats.Bits, stats.Hashes, stats.Shards = b.Family().Name(), b.M(), b.K(), len(b.Shards())
		stats.FillRatio, stats.ComputedFPR, stats.EstimatedEntries = b.FillRatio(), b.ExpectedFPR(float64(f.keys)), b.EstimatedEntries()
		stats.FilterBytes = b.Bytes()
	case f.counting != nil:
		b := f.counting.Filter()
		stats.Family, stats.Bits, stats.Hashes, stats.Shards = b.Family().Name(), b.M(), b.K(), 1
		stats.FillRatio, stats.ComputedFPR, stats.EstimatedEntries = b.FillRatio(), b.ExpectedFPR(float64(f.keys)), b.EstimatedEntries()
		stats.FilterBytes = f.counting.Bytes()
	default:
		f.describeFuse(stats)
	}
	if f.old != nil {
		var old SetStats
		f.old.describe(&old)
		stats.FilterBytes += old.FilterBytes
		stats.OldFilters = old.OldFilters + 1
	}
	stats.FPR, stats.Similar = stats.ComputedFPR, similar
	stats.Unprobed = f.resembling() && f.keys > 0 && similar == nil
	if f.resembling() {
		f.describeProbes(stats)
	}
	if f.layout.Kind == KindClassic && (f.keys > f.capacity || stats.FillRatio > 0.5) {
		stats.Warning = fmt.Sprintf("the classic filter's bitmap is %.0f%% full: %d keys, and it is made for %.0f: about one lookup in %.0f costs a needless confirmation; the filter kinds %q and %q grow with their lists",
			100*stats.FillRatio, f.keys, stats.Capacity, 1/stats.FPR, KindAuto, KindSharded)
	}
}

// describeProbes fills in what was measured with changed entries. The rate that is shown
// is never below the upper limit of that.
func (f *setFilter) describeProbes(stats *SetStats) {
	for _, r := range stats.Similar {
		if _, high := r.Limits(); r.Probes > 0 && !(stats.FPR >= high) { // also true for NaN
			stats.FPR = high
		}
	}
	worst := Worst(stats.Similar)
	if low, _ := worst.Limits(); !f.layout.Kind.classic() && low > f.layout.FPR {
		stats.Warning = fmt.Sprintf("[filter] fpr = %v: with names that resemble its entries the family %s has a rate of %.2g (%d of %d entries with %s changed passed): it can be had with the family %q, which has it for any names",
			f.layout.FPR, f.layout.spec, worst.Rate(), worst.False, worst.Probes, worst.Change, KindSized.DefaultFamily())
	}
}

// alone returns the filter's fill ratio and its false positive rate if it held this many
// keys of one list and no others. A fuse filter's rate does not depend on their
// number.
func (f *setFilter) alone(keys int) (fill, fpr float64) {
	switch {
	case f.bitmaps != nil:
		return f.bitmaps.Expect(float64(keys))
	case f.counting != nil:
		return f.counting.Filter().Expect(float64(keys))
	case keys == 0:
		return 0, 0
	}
	return 0, bloom.FuseFPR(bloom.FuseWidth(f.layout.FPR))
}

// describeFuse describes fuse filters. A key is looked up in each of them.
func (f *setFilter) describeFuse(stats *SetStats) {
	stats.Family = "fuse"
	stats.Hashes = 3
	absent := 1.0 // the probability that an absent key passes none
	for _, fuse := range f.fuse {
		stats.FilterBytes += fuse.Bytes()
		stats.EstimatedEntries += float64(fuse.Keys())
		absent *= 1 - fuse.FPR()
	}
	stats.Bits = 8 * stats.FilterBytes
	stats.ComputedFPR = 1 - absent
	stats.Shards = len(f.fuse)
}
