package bloom

import "spamgate/hashfamily"

// Look holds the places of a key's first bits in a filter. To look up several keys,
// make a Look of each and then call Maybe for each: their memory is fetched side by
// side, while MayContain for one key after another mostly waits.
type Look struct {
	filter               *Filter // nil if Maybe cannot tell
	first, second, third uint32
}

// sparse limits how full a classic filter may be, one bit in so many, for its Look
// to have one place only: the first bit decides nearly always then, and more hashes
// cost more than they save.
const sparse = 32

// Look returns the places of key's first bits, and starts to fetch their memory
// without waiting for it. For a family that has no quick way to some of its
// indices, Maybe is always 1. It does not allocate.
//
// A classic filter has the places of the leaders: at 10 million entries 2% of the
// absent keys pass these three bits. The double and the seeded families have their
// first three places, which an eighth of them pass in a filter that is half full.
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

// lookLeaders returns the Look of a classic family that has the leaders.
func (f *Filter) lookLeaders(key []byte) Look {
	if f.setBits < f.m/sparse {
		first := uint32(f.reduce(bkdr(key)))
		return Look{f, first, first, first}
	}
	bkdr, djb, dek := leadersOf(key)
	return Look{f, uint32(f.reduce(bkdr)), uint32(f.reduce(djb)), uint32(f.reduce(dek))}
}

// lookSteps returns the Look of the double and the seeded families. If there are
// fewer than three indices it repeats the last.
func (f *Filter) lookSteps(a, b, c uint64) Look {
	second, third := a, a
	if f.k > 1 {
		second = f.step(a, b)
		third = second
	}
	if f.k > 2 {
		third = f.step(second, f.step(b, c))
	}
	return Look{f, uint32(a), uint32(second), uint32(third)}
}

// Maybe returns 0 if one of the bits is clear, so that MayContain is false; else 1.
// It reads all bits and has no branch.
func (l *Look) Maybe() byte {
	if l.filter == nil {
		return 1
	}
	return l.filter.bit(uint64(l.first)) & l.filter.bit(uint64(l.second)) & l.filter.bit(uint64(l.third))
}

// Look returns the [Filter.Look] of the key's shard.
func (s *Sharded) Look(hash uint64, key []byte) Look { return s.shards[s.shard(hash)].Look(key) }
