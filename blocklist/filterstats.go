package blocklist

import (
	"fmt"

	"spamgate/blocklist/bloom"
)

// describe fills in what [SetStats] says of the filter.
func (f *setFilter) describe(stats *SetStats) {
	stats.Kind = f.layout.Kind
	stats.Capacity = float64(f.capacity)
	switch {
	case f.bitmaps != nil:
		b := f.bitmaps
		stats.Family, stats.Bits, stats.Hashes, stats.Shards = b.Family().Name(), b.M(), b.K(), len(b.Shards())
		stats.FillRatio, stats.FPR, stats.EstimatedEntries = b.FillRatio(), b.ExpectedFPR(), b.EstimatedEntries()
		stats.FilterBytes = b.Bytes()
	case f.counting != nil:
		b := f.counting.Filter()
		stats.Family, stats.Bits, stats.Hashes, stats.Shards = b.Family().Name(), b.M(), b.K(), 1
		stats.FillRatio, stats.FPR, stats.EstimatedEntries = b.FillRatio(), b.ExpectedFPR(), b.EstimatedEntries()
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
	if f.layout.Kind == KindClassic && (f.keys > f.capacity || stats.FillRatio > 0.5) {
		stats.Warning = fmt.Sprintf("the classic filter's bitmap is %.0f%% full: %d keys, and it is made for %.0f: about one lookup in %.0f costs a needless confirmation; the filter kinds %q and %q grow with their lists",
			100*stats.FillRatio, f.keys, stats.Capacity, 1/stats.FPR, KindAuto, KindSharded)
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
	stats.FPR = 1 - absent
	stats.Shards = len(f.fuse)
}
