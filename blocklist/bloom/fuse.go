package bloom

import (
	"context"
	"fmt"
	"math"
	"math/bits"

	"github.com/FastFilter/xorfilter"
)

// Fuse is a set of binary fuse filters over the hashes of keys: smaller than a
// Bloom filter of the same rate, and never changed. A key's fingerprint is the
// exclusive or of what stands at three places, so that every lookup reads three
// places and no more. A filter of w bits takes about 1.13·w bits a key and has a
// false positive rate of 2^-w; a Bloom filter takes 1.44·w for that.
//
// Building needs some 30 bytes a key at once. So the keys are divided among as
// many filters of about fuseKeys keys each as they need, by the range that their
// hash is in, and memory does not grow with the number of keys.
//
// The hashes are the caller's: 64 bits, even over all keys and secret. Two keys
// of one hash are one to the filter.
//
// Source: Graf and Lemire, "Binary Fuse Filters: Fast and Smaller Than Xor
// Filters" (ACM Journal of Experimental Algorithmics 27, 2022).
type Fuse struct {
	width   int
	keys    uint64
	filters []fuseFilter
}

// fuseFilter is a filter of one range of hashes. Of the three one is used, and
// none where there is no key.
type fuseFilter struct {
	narrow xorfilter.BinaryFuse[uint8]
	middle xorfilter.BinaryFuse[uint16]
	wide   xorfilter.BinaryFuse[uint32]
}

// fuseKeys is how many keys a filter has on average: enough that the places that
// a small filter wastes are few (from a million on it is an eighth), and few
// enough that building takes some 30 MiB.
const fuseKeys = 1 << 20

// MaxFuseWidth is the largest number of bits of a fingerprint.
const MaxFuseWidth = 32

// FuseWidth returns the least number of bits of a fingerprint, 8, 16 or 32, whose
// false positive rate is not above fpr, or MaxFuseWidth where there is none.
func FuseWidth(fpr float64) int {
	for _, width := range []int{8, 16} {
		if FuseFPR(width) <= fpr {
			return width
		}
	}
	return MaxFuseWidth
}

// FuseFPR returns the false positive rate of fingerprints of so many bits.
func FuseFPR(width int) float64 { return math.Ldexp(1, -width) }

// MayContain reports whether a key with the hash may be there: false is certain,
// true is wrong with the probability FPR. It does not allocate.
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

// Keys returns how many keys the filter holds, those of one hash once.
func (f *Fuse) Keys() uint64 { return f.keys }

// Width returns the number of bits of a fingerprint: 8, 16 or 32.
func (f *Fuse) Width() int { return f.width }

// FPR returns the probability that MayContain is true for a key that is not there.
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

// places returns how many fingerprints the filter has, of whatever width.
func (f *fuseFilter) places() uint64 {
	return uint64(len(f.narrow.Fingerprints) + len(f.middle.Fingerprints) + len(f.wide.Fingerprints))
}

// NewFuse makes a filter of n keys with fingerprints of 8, 16 or 32 bits, on all
// cores; n decides how the keys are divided, and need not be exact.
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

// newFuseFilter makes the filter of a range of hashes, and says of how many.
func newFuseFilter(ctx context.Context, width int, scan Scan, first, last uint64) (f fuseFilter, n int, err error) {
	hashes := make([]uint64, 0, fuseKeys+fuseKeys/8)
	err = scan(first, last, func(hash uint64, _ []byte) bool {
		if n := len(hashes); n == 0 || hashes[n-1] != hash { // two of a hash are neighbours
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

// FuseBytes returns about what a filter of n keys takes: the paper's factor, which is
// an eighth more than the keys from a million on, and what is lost by dividing
// the places into equal segments.
func FuseBytes(n uint64, width int) uint64 {
	if n == 0 {
		return 0
	}
	filters := (n + fuseKeys - 1) / fuseKeys
	each := math.Max(float64(n)/float64(filters), 2)
	factor := math.Max(1.125, 0.875+0.25*math.Log(1e6)/math.Log(each))
	return uint64(float64(n) * factor * 1.005 * float64(width) / 8)
}
