package bloom

import "spamgate/hashfamily"

// Look is the places of a key's first bits in a filter. Who asks for several keys
// makes a Look of each, and asks them for Maybe when all are made. So the memory of
// all keys is fetched side by side, where MayContain, one key after the other,
// mostly waits for each.
type Look struct {
	filter               *Filter // nil: nothing is known before MayContain
	first, second, third uint32
}

// sparse is the part of the bits, one in so many, below which a classic filter's
// Look has one place only: the first bit decides nearly always, and more hashes
// cost more than they spare.
const sparse = 32

// Look returns the places of key's first bits, and has their memory fetched
// without waiting for it. For a family that has no quick way to some of its
// indices, the Look is always a maybe. It does not allocate.
//
// A classic filter has the places of the leaders: at 10 million entries 2% of the
// absent keys pass these three bits. Double hashing has the first three places, which
// an eighth passes in a filter as full as it should be.
func (f *Filter) Look(key []byte) Look {
	var l Look
	switch family := f.family.(type) {
	case *hashfamily.Classic:
		if !f.staged {
			return l
		}
		l = f.lookLeaders(key)
	case *hashfamily.Seeded:
		l = f.lookSteps(family.Start(key))
	case *hashfamily.Double:
		l = f.lookSteps(family.Start(key))
	default:
		return l
	}
	prefetch(&f.bits[0], l.first, l.second, l.third)
	return l
}

// lookLeaders is Look for a classic family that has the leaders.
func (f *Filter) lookLeaders(key []byte) Look {
	if f.setBits < f.m/sparse {
		first := uint32(f.reduce(bkdr(key)))
		return Look{f, first, first, first}
	}
	bkdr, djb, dek := leadersOf(key)
	return Look{f, uint32(f.reduce(bkdr)), uint32(f.reduce(djb)), uint32(f.reduce(dek))}
}

// lookSteps is Look for double hashing; where there are fewer than three indices
// it has the last one again.
func (f *Filter) lookSteps(a, b uint64) Look {
	second, third := a, a
	if f.k > 1 {
		second = f.step(a, b)
		third = second
	}
	if f.k > 2 {
		third = f.step(second, b)
	}
	return Look{f, uint32(a), uint32(second), uint32(third)}
}

// Maybe returns 0 if one of the bits is clear, and MayContain so is false; else 1.
// It reads all bits and branches on none.
func (l *Look) Maybe() byte {
	if l.filter == nil {
		return 1
	}
	return l.filter.bit(uint64(l.first)) & l.filter.bit(uint64(l.second)) & l.filter.bit(uint64(l.third))
}

// Look is [Filter.Look] of the key's shard.
func (s *Sharded) Look(hash uint64, key []byte) Look { return s.shards[s.shard(hash)].Look(key) }
