package blocklist

import (
	"fmt"
	"math"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
)

// minCapacity keeps the filter of a short list, which often is a list just begun,
// from being made anew for each new line. It costs some 350 KiB.
const minCapacity = 100_000

// bitmapCapacity returns how many keys suit one classic bitmap.
func (l layout) bitmapCapacity() uint64 { return uint64(bloom.Capacity(l.classicBits, l.spec.K())) }

// capacity returns for how many keys a filter is made when there are this many.
func (l layout) capacity(keys uint64) uint64 {
	switch l.Kind {
	case KindFuse:
		return keys
	case KindClassic:
		return l.bitmapCapacity()
	case KindAuto:
		if keys <= l.bitmapCapacity() {
			return l.bitmapCapacity()
		}
	}
	capacity := l.Entries
	switch {
	case l.Entries > 0 && keys <= l.Entries:
	case l.Kind.classic(): // a shard is 32 MiB
		capacity = keys + keys/4
	default:
		capacity = max(keys+l.headroom(keys), minCapacity)
	}
	if l.Kind.classic() {
		return l.bitmapCapacity() * l.shards(capacity)
	}
	return capacity
}

// headroom returns for how many more keys than there are a sized filter is made: half
// as many, or less if the bitmap would be larger than bitmaps can be.
func (l layout) headroom(keys uint64) uint64 {
	for _, part := range []uint64{2, 4, 8, 16} {
		if _, _, err := bloom.Size(l.spec, max(keys+keys/part, 1), l.FPR); err == nil {
			return keys / part
		}
	}
	return 0
}

// shards returns how many bitmaps a filter of this capacity has.
func (l layout) shards(capacity uint64) uint64 {
	if l.Kind == KindSharded || l.Kind == KindAuto {
		return max((capacity+l.bitmapCapacity()-1)/l.bitmapCapacity(), 1)
	}
	return 1
}

// fits reports whether a filter of this capacity is neither too small for the keys, nor
// much too large. As long as it fits it stays: with another capacity the bits of all
// lists would change.
func (l layout) fits(capacity, keys uint64) bool {
	switch l.Kind {
	case KindFuse:
		return false // no list's filter depends on the capacity
	case KindClassic:
		return capacity == l.bitmapCapacity()
	}
	if l.Entries > 0 && keys <= l.Entries {
		return capacity == l.capacity(keys)
	}
	return keys <= capacity && l.capacity(keys) > capacity/4
}

// family returns the family of a filter of this capacity.
func (l layout) family(capacity uint64, key []byte) (hashfamily.Family, error) {
	if l.Kind.classic() {
		return l.spec.New(hashfamily.Params{M: l.classicBits})
	}
	m, k, err := bloom.Size(l.spec, capacity, l.FPR)
	if err != nil {
		return nil, fmt.Errorf("%w, or the kind %s", err, KindSharded)
	}
	return l.spec.New(hashfamily.Params{M: m, K: k, Key: key})
}

// newBitmaps returns an empty filter of this capacity.
func (l layout) newBitmaps(capacity uint64, key []byte) (*bloom.Sharded, error) {
	family, err := l.family(capacity, key)
	if err != nil {
		return nil, err
	}
	shards := l.shards(capacity)
	if shards > math.MaxInt32 {
		return nil, fmt.Errorf("%d shards for %d entries: use fewer", shards, capacity)
	}
	return bloom.NewSharded(family, int(shards))
}
