package bloom

import (
	"context"
	"fmt"
	"math"
	"math/bits"

	"github.com/FastFilter/xorfilter"
)

// Fuse is a set of binary fuse filters over the hashes of keys. It is smaller than
// a Bloom filter of the same rate, and never changes. A key's fingerprint is the
// exclusive or of the values at three places, so every lookup reads three places. A
// filter of w bits takes about 1.13·w bits a key and has a false positive rate of
// 2^-w; a Bloom filter takes 1.44·w for that.
//
// Building needs some 30 bytes a key. So the keys are divided by the ranges of
// their hashes among several filters of about fuseKeys keys each, and memory does
// not grow with the number of keys.
//
// The caller provides the hashes: 64 bits, evenly distributed and secret. Two keys
// with one hash count as one.
//
// Source: Graf and Lemire, "Binary Fuse Filters: Fast and Smaller Than Xor Filters"
// (ACM Journal of Experimental Algorithmics 27, 2022).
type Fuse struct {
	width   int
	keys    uint64
	filters []fuseFilter
}

// fuseFilter is a filter of one range of hashes. One of the three is used, or none
// if there is no key.
type fuseFilter struct {
	narrow xorfilter.BinaryFuse[uint8]
	middle xorfilter.BinaryFuse[uint16]
	wide   xorfilter.BinaryFuse[uint32]
}

// fuseKeys is the average number of keys of a filter. From a million on a filter
// wastes only an eighth of its places, and building takes some 30 MiB.
const fuseKeys = 1 << 20

// MaxFuseWidth is the largest number of bits of a fingerprint.
const MaxFuseWidth = 32

// FuseWidth returns the smallest number of bits of a fingerprint, 8, 16 or 32, with
// a false positive rate of at most fpr, or MaxFuseWidth if there is none.
func FuseWidth(fpr float64) int {
	for _, width := range []int{8, 16} {
		if FuseFPR(width) <= fpr {
			return width
		}
	}
	return MaxFuseWidth
}

// FuseFPR returns the false positive rate of fingerprints of width bits.
func FuseFPR(width int) float64 { return math.Ldexp(1, -width) }

// MayContain reports whether a key with the hash may be in the filter: false is
// certain, true is wrong with the probability FPR. It does not allocate.
func (f *Fuse) MayContain(hash uint64) bool {
	if len(f.filters) == 0 {
		return false
	}
	high, _ := bits.Mul64(hash, uint64(len(f.filters)))
	filter := &f.filters[high]
	switch f.width {
	case 8:
		return len(filter.narrow.Fingerprints) > 0 && filter.narrow.Contains(hash)
	case 16:
		return len(filter.middle.Fingerprints) > 0 && filter.middle.Contains(hash)
	default:
		return len(filter.wide.Fingerprints) > 0 && filter.wide.Contains(hash)
	}
}

// Keys returns the number of keys; those with one hash count once.
func (f *Fuse) Keys() uint64 { return f.keys }

// Width returns the number of bits of a fingerprint: 8, 16 or 32.
func (f *Fuse) Width() int { return f.width }

// FPR returns the probability that MayContain is true for an absent key.
func (f *Fuse) FPR() float64 {
	if f.keys == 0 {
		return 0
	}
	return FuseFPR(f.width)
}

// Bytes returns the memory that the fingerprints take.
func (f *Fuse) Bytes() uint64 {
	n := uint64(0)
	for i := range f.filters {
		n += f.filters[i].places()
	}
	return n * uint64(f.width/8)
}

// places returns the number of fingerprints.
func (f *fuseFilter) places() uint64 {
	return uint64(len(f.narrow.Fingerprints) + len(f.middle.Fingerprints) + len(f.wide.Fingerprints))
}

// NewFuse makes a filter of n keys with fingerprints of 8, 16 or 32 bits, on all
// cores. It divides the keys by n, which need not be exact.
func NewFuse(ctx context.Context, width int, n uint64, scan Scan) (*Fuse, error) {
	if width != 8 && width != 16 && width != 32 {
		return nil, fmt.Errorf("fuse filter: fingerprints of %d bits: use 8, 16 or 32", width)
	}
	f := &Fuse{width: width, filters: make([]fuseFilter, (n+fuseKeys-1)/fuseKeys)}
	if n == 0 {
		f.filters = make([]fuseFilter, 1)
	}
	keys := make([]int, len(f.filters))
	err := parallel(len(f.filters), func(i int) (err error) {
		first, last := shardHashes(i, len(f.filters))
		f.filters[i], keys[i], err = newFuseFilter(ctx, width, scan, first, last)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("fuse filter: %w", err)
	}
	for _, n := range keys {
		f.keys += uint64(n)
	}
	return f, nil
}

// newFuseFilter makes the filter of a range of hashes, and returns the number of
// its keys.
func newFuseFilter(ctx context.Context, width int, scan Scan, first, last uint64) (f fuseFilter, n int, err error) {
	hashes := make([]uint64, 0, fuseKeys+fuseKeys/8)
	err = scan(first, last, func(hash uint64, _ []byte) bool {
		if n := len(hashes); n == 0 || hashes[n-1] != hash { // equal hashes are neighbours
			hashes = append(hashes, hash)
		}
		return len(hashes)%fuseKeys != 0 || ctx.Err() == nil
	})
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	n = len(hashes)
	if err != nil || n == 0 {
		return f, n, err
	}
	var builder xorfilter.BinaryFuseBuilder
	switch width {
	case 8:
		f.narrow, err = xorfilter.BuildBinaryFuse[uint8](&builder, hashes)
	case 16:
		f.middle, err = xorfilter.BuildBinaryFuse[uint16](&builder, hashes)
	default:
		f.wide, err = xorfilter.BuildBinaryFuse[uint32](&builder, hashes)
	}
	return f, n, err
}

// FuseBytes returns the approximate size of a filter of n keys: the paper's factor,
// which is 1.125 from a million keys on, and the loss by dividing the places into
// equal segments.
func FuseBytes(n uint64, width int) uint64 {
	if n == 0 {
		return 0
	}
	filters := (n + fuseKeys - 1) / fuseKeys
	each := math.Max(float64(n)/float64(filters), 2)
	factor := math.Max(1.125, 0.875+0.25*math.Log(1e6)/math.Log(each))
	return uint64(float64(n) * factor * 1.005 * float64(width) / 8)
}
