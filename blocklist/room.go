package blocklist

import (
	"fmt"
	"math"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
)

// minRoom keeps the filter of a short list, which often is a list just begun,
// from being made anew at each line, and from being so small that double hashing
// misses its rate (see [bloom.Filter.ExpectedFPR]). It costs some 350 KiB.
const minRoom = 100_000

// capacity is how many keys suit one classic bitmap.
func (l layout) capacity() uint64 { return uint64(bloom.Capacity(l.classicBits, l.spec.K())) }

// room is how many keys a filter is made for when there are some.
func (l layout) room(keys uint64) uint64 {
	switch l.Kind {
	case KindFuse:
		return keys
	case KindClassic:
		return l.capacity()
	case KindAuto:
		if keys <= l.capacity() {
			return l.capacity()
		}
	}
	room := l.Entries
	switch {
	case l.Entries > 0 && keys <= l.Entries:
	case l.Kind.classic(): // a shard is 32 MiB
		room = keys + keys/4
	default:
		room = max(keys+l.headroom(keys), minRoom)
	}
	if l.Kind.classic() {
		return l.capacity() * l.shards(room)
	}
	return room
}

// headroom is for how many more keys than there are a sized filter is made: half
// as many, or less where the bitmap would be larger than bitmaps can be.
func (l layout) headroom(keys uint64) uint64 {
	for _, part := range []uint64{2, 4, 8, 16} {
		if _, _, err := bloom.Size(l.spec, max(keys+keys/part, 1), l.FPR); err == nil {
			return keys / part
		}
	}
	return 0
}

// shards is how many bitmaps a filter with so much room has.
func (l layout) shards(room uint64) uint64 {
	if l.Kind == KindSharded || l.Kind == KindAuto {
		return max((room+l.capacity()-1)/l.capacity(), 1)
	}
	return 1
}

// fits reports that a filter with so much room is neither too small for so many
// keys, nor much too large. As long as it fits it stays: with another room the
// bits of all lists would be others.
func (l layout) fits(room, keys uint64) bool {
	switch l.Kind {
	case KindFuse:
		return false // no list's filter depends on the room
	case KindClassic:
		return room == l.capacity()
	}
	if l.Entries > 0 && keys <= l.Entries {
		return room == l.room(keys)
	}
	return keys <= room && l.room(keys) > room/4
}

// family makes the family of a filter with so much room.
func (l layout) family(room uint64, key []byte) (hashfamily.Family, error) {
	if l.Kind.classic() {
		return l.spec.New(hashfamily.Params{M: l.classicBits})
	}
	m, k, err := bloom.Size(l.spec, room, l.FPR)
	if err != nil {
		return nil, fmt.Errorf("%w, or the kind %s", err, KindSharded)
	}
	return l.spec.New(hashfamily.Params{M: m, K: k, Key: key})
}

// newBitmaps makes an empty filter with so much room.
func (l layout) newBitmaps(room uint64, key []byte) (*bloom.Sharded, error) {
	family, err := l.family(room, key)
	if err != nil {
		return nil, err
	}
	shards := l.shards(room)
	if shards > math.MaxInt32 {
		return nil, fmt.Errorf("%d shards for %d entries: use fewer", shards, room)
	}
	return bloom.NewSharded(family, int(shards))
}
