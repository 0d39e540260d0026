package blocklist

import (
	"crypto/rand"
	"fmt"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
)

// Kind is the structure of the filter.
type Kind string

const (
	// KindClassic is a bitmap of [bloom.ClassicBits] bits, however many the
	// entries, over the classic hashes or some of them.
	KindClassic Kind = "classic"

	// KindSized is a bitmap of as many bits as the entries and the false
	// positive rate need, over any family.
	KindSized Kind = "sized"

	// KindCounting is sized, with a counter beside each bit: when a list
	// changes, only the entries that came and went are added and removed.
	KindCounting Kind = "counting"
)

// Defaults of the sized and the counting filter.
const (
	DefaultFPR         = 1e-6
	DefaultCounterBits = 4
)

// The range of [Filter.FPR]: beyond it a filter is either none or larger than
// the exact index that it spares.
const (
	MinFPR = 1e-12
	MaxFPR = 0.5
)

// Filter says what stands in front of the exact index. The zero value is the
// classic filter.
type Filter struct {
	// Kind is the structure; empty means [KindClassic].
	Kind Kind

	// Family names the hashes, as [hashfamily.ParseSpec] reads it; empty means
	// "classic" for [KindClassic] and "double" for the others.
	Family string

	// Entries is how many keys a sized or counting filter has room for. Where
	// the lists hold more, or with 0, it is half as many again as they hold.
	Entries uint64

	// FPR is the false positive rate of a sized or counting filter that holds
	// as many keys as it has room for, from [MinFPR] to [MaxFPR]; 0 means
	// [DefaultFPR].
	FPR float64

	// CounterBits is the width of a counter: 4, 8 or 16; 0 means
	// [DefaultCounterBits].
	CounterBits int
}

// layout is a checked [Filter].
type layout struct {
	Filter
	spec        hashfamily.Spec
	classicBits uint64 // m of the classic kind
}

// same reports that filters of both can take each other's place.
func (l layout) same(other layout) bool {
	return l.Filter == other.Filter && l.classicBits == other.classicBits
}

// filterKey is the secret of keyed hash families: filters live no longer than
// the process, so that the key need not either.
var filterKey = func() []byte {
	key := make([]byte, hashfamily.KeySize)
	rand.Read(key) // never fails, see crypto/rand
	return key
}()

// layout checks f, and fills in what zero values stand for.
func (f Filter) layout() (layout, error) {
	if f.Kind == "" {
		f.Kind = KindClassic
	}
	if f.Family == "" {
		f.Family = "double"
		if f.Kind == KindClassic {
			f.Family = "classic"
		}
	}
	if f.FPR == 0 {
		f.FPR = DefaultFPR
	}
	if f.CounterBits == 0 {
		f.CounterBits = DefaultCounterBits
	}
	switch f.Kind {
	case KindClassic, KindSized, KindCounting:
	default:
		return layout{}, fmt.Errorf("filter kind %q is unknown: use %s, %s or %s", f.Kind, KindClassic, KindSized, KindCounting)
	}
	spec, err := hashfamily.ParseSpec(f.Family)
	if err != nil {
		return layout{}, err
	}
	l := layout{f, spec, bloom.ClassicBits}
	if f.Kind == KindClassic {
		if !spec.Classic() {
			return layout{}, fmt.Errorf("filter kind classic takes no hash family %s: use classic or some of its hashes, or one of the kinds %s and %s",
				spec, KindSized, KindCounting)
		}
		return l, nil
	}
	if !(f.FPR >= MinFPR && f.FPR <= MaxFPR) { // not a number is out of range too
		return layout{}, fmt.Errorf("false positive rate %v: use %v to %v", f.FPR, MinFPR, MaxFPR)
	}
	if f.Kind == KindCounting && f.CounterBits != 4 && f.CounterBits != 8 && f.CounterBits != 16 {
		return layout{}, fmt.Errorf("counters of %d bits: use 4, 8 or 16", f.CounterBits)
	}
	if _, err := l.family(0); err != nil {
		return layout{}, err
	}
	return l, nil
}

// minRoom keeps the filter of a short list, which often is a list just begun,
// from being made anew at each line, and from being so small that double hashing
// misses its rate (see [bloom.Filter.ExpectedFPR]). It costs some 350 KiB.
const minRoom = 100_000

// room is how many keys a filter is made for when there are some.
func (l layout) room(keys uint64) uint64 {
	if l.Kind == KindClassic {
		return uint64(bloom.Capacity(l.classicBits, l.spec.K()))
	}
	if l.Entries > 0 && keys <= l.Entries {
		return l.Entries
	}
	return max(keys+keys/2, minRoom)
}

// family makes the family of a filter for so many keys.
func (l layout) family(keys uint64) (hashfamily.Family, error) {
	if l.Kind == KindClassic {
		return l.spec.New(hashfamily.Params{M: l.classicBits})
	}
	m, k, err := bloom.Size(l.spec, l.room(keys), l.FPR)
	if err != nil {
		return nil, err
	}
	return l.spec.New(hashfamily.Params{M: m, K: k, Key: filterKey})
}
