package bloom

import (
	"math/bits"
	"unsafe"
)

// A large bitmap is filled faster where bits that lie close are set one after the
// other: each bit of a key is in another place, which is a cache miss. So the
// indices of many keys are first dealt to regions of the bitmap, and a region's
// bits are set when there are enough of them (BenchmarkDeal).
const (
	dealRegion  = 20      // log2 of a region's bits: 128 KiB stay in a near cache
	dealRegions = 256     // at most; in bitmaps of more than 32 MiB they are larger
	dealHand    = 1 << 14 // indices of a region that are set at once, 64 KiB
	dealFrom    = 1 << 17 // keys, from which on it is worth its memory of up to 16 MiB
)

// dealer adds keys to a filter. They are all in it after close, and not before.
type dealer struct {
	f       *Filter
	shift   int      // of an index, to its region
	hands   []uint32 // dealHand for each region
	dealt   []int    // how many of them are there
	release func()   // of hands
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

// addAll is [Filter.AddAll] for a batch.
func (d *dealer) addAll(keys [][]byte) {
	for _, i := range d.f.hash(keys) {
		region := int(i >> d.shift)
		n := d.dealt[region]
		d.hands[region*dealHand+n] = uint32(i) // which m is not larger than
		if n++; n == dealHand {
			d.set(region, n)
			n = 0
		}
		d.dealt[region] = n
	}
}

// close sets the bits of what was dealt. The dealer is of no use afterwards.
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
