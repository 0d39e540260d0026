package bloom

import (
	"math/bits"
	"unsafe"
)

// Each bit of a key is in another place of a large bitmap, which is a cache miss. So
// the indices of many keys are first dealt to regions of the bitmap, and the bits of
// a region are set together once there are enough of them (BenchmarkDeal).
const (
	dealRegion  = 20      // log2 of a region's bits: 128 KiB fit into a near cache
	dealRegions = 256     // at most; regions of bitmaps above 32 MiB are larger
	dealHand    = 1 << 14 // indices of a region that are set together, 64 KiB
	dealFrom    = 1 << 17 // number of keys from which on a dealer is worth its memory of up to 16 MiB
)

// dealer adds keys to a filter. The filter has all of them only after close.
type dealer struct {
	f       *Filter
	shift   int      // right shift that makes a region of an index
	hands   []uint32 // dealHand for each region
	dealt   []int    // number of indices in each hand
	release func()   // frees hands
}

// newDealer returns a dealer for a filter, or nil if n keys are too few for one.
func newDealer(f *Filter, n uint64) *dealer {
	if n < dealFrom || f.m <= 1<<dealRegion {
		return nil
	}
	shift := max(dealRegion, bits.Len64(f.m-1)-bits.Len(dealRegions-1))
	regions := int((f.m-1)>>shift) + 1
	memory, release := newScratch(4 * regions * dealHand)
	hands := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(memory))), regions*dealHand)
	return &dealer{f: f, shift: shift, hands: hands, dealt: make([]int, regions), release: release}
}

// addAll adds a batch of keys, as [Filter.AddAll] does.
func (d *dealer) addAll(keys [][]byte) {
	for _, i := range d.f.hash(keys) {
		region := int(i >> d.shift)
		n := d.dealt[region]
		d.hands[region*dealHand+n] = uint32(i) // fits: a dealer's m is at most 2^32
		if n++; n == dealHand {
			d.set(region, n)
			n = 0
		}
		d.dealt[region] = n
	}
}

// close sets the bits that are still dealt, and frees the dealer's memory.
func (d *dealer) close() {
	for region, n := range d.dealt {
		d.set(region, n)
	}
	d.release()
}

// set sets the bits of the first n indices of a region.
func (d *dealer) set(region, n int) {
	d.f.setBits += setAll(d.f.bits, d.hands[region*dealHand:][:n])
}
