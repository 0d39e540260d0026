package blocklist

import (
	"fmt"
	"slices"
	"strings"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
)

// Kind is the structure of the filter.
type Kind string

const (
	// KindClassic is a bitmap of [bloom.ClassicBits] bits, however many the
	// entries, over the classic hashes or some of them.
	KindClassic Kind = "classic"

	// KindSharded is as many classic bitmaps as the entries need, each for those
	// keys whose hash is in its range.
	KindSharded Kind = "sharded"

	// KindSized is a bitmap of as many bits as the entries and the false
	// positive rate need, over any family.
	KindSized Kind = "sized"

	// KindCounting is sized, with a counter beside each bit: when a list
	// changes, only the entries that came and went are added and removed.
	KindCounting Kind = "counting"

	// KindFuse is a binary fuse filter for each list, over a 64-bit hash of its
	// own: the smallest, and made anew whole when its list changes.
	KindFuse Kind = "fuse"

	// KindAuto is classic while the entries are no more than the capacity of
	// that, and sharded beyond.
	KindAuto Kind = "auto"
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{KindClassic, KindSharded, KindSized, KindCounting, KindFuse, KindAuto}
}

// DefaultFamily returns the family that is used if none is named: "" for [KindFuse],
// which takes none.
func (k Kind) DefaultFamily() string {
	switch {
	case k == KindFuse:
		return ""
	case k.classic():
		return "classic"
	}
	return "double"
}

// TakesFamily reports whether the kind goes with a hash family.
func (k Kind) TakesFamily(s hashfamily.Spec) bool {
	return k != KindFuse && (!k.classic() || s.Classic())
}

// classic reports whether the kind is made of classic bitmaps.
func (k Kind) classic() bool { return k == KindClassic || k == KindSharded || k == KindAuto }

// Defaults of the sized, the counting and the fuse filter.
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

// Filter says which filter is asked before the exact index. The zero value is the
// classic filter.
type Filter struct {
	// Kind is the structure; empty means [KindClassic].
	Kind Kind

	// Family names the hashes, as [hashfamily.ParseSpec] reads it; empty means
	// [Kind.DefaultFamily].
	Family string

	// Entries is the capacity in keys, unless the filter is classic or fuse. If
	// the lists hold more, or with 0, it is half as many again as they hold (a
	// quarter for sharded).
	Entries uint64

	// FPR is the false positive rate of a sized or counting filter that holds
	// as many keys as its capacity, from [MinFPR] to [MaxFPR]; 0 means
	// [DefaultFPR]. A fuse filter has the rate of the least fingerprint of 8, 16
	// or 32 bits that is not above it (see [bloom.FuseWidth]), in each list.
	FPR float64

	// CounterBits is the width of a counter: 4, 8 or 16; 0 means
	// [DefaultCounterBits].
	CounterBits int
}

// Validate returns an error if the filter is invalid.
func (f Filter) Validate() error {
	_, err := f.layout()
	return err
}

// layout is a checked [Filter].
type layout struct {
	Filter
	spec        hashfamily.Spec // none for fuse
	classicBits uint64          // m of the classic kind, and of a shard
	partKeys    uint64          // from how many keys on a list's bits are kept, see keepsBits
}

// partKeys is the usual one: setting the bits of fewer keys takes some
// milliseconds, which is what reading them takes (BenchmarkPart in bloom).
const partKeys = 1 << 15

// partBits is how many bits of a filter there are, beyond those of a classic one,
// for each key of a list whose bits are kept. To make a list's bits takes a bitmap
// of the filter's size, which is cleared and looked through, however few its keys:
// at 256 MiB as long as a million keys take, each time the list changes. A list
// of fewer has its bits set anew when another one changes, in less time than that.
const partBits = 2048

// keepsBits reports whether the bits of a list of n keys are kept, for a filter of
// m bits.
func (l layout) keepsBits(n, m uint64) bool {
	return n >= l.partKeys && (m <= l.classicBits || n >= (m-l.classicBits)/partBits)
}

// same reports whether filters of both layouts can replace each other.
func (l layout) same(other layout) bool {
	return l.Filter == other.Filter && l.classicBits == other.classicBits
}

// layout checks f, and fills in the defaults.
func (f Filter) layout() (layout, error) {
	if f.Kind == "" {
		f.Kind = KindClassic
	}
	if !slices.Contains(Kinds(), f.Kind) {
		return layout{}, fmt.Errorf("filter kind %q is unknown: use %s", f.Kind, kindNames(Kinds()))
	}
	if f.FPR == 0 {
		f.FPR = DefaultFPR
	}
	if f.CounterBits == 0 {
		f.CounterBits = DefaultCounterBits
	}
	l := layout{Filter: f, classicBits: bloom.ClassicBits, partKeys: partKeys}
	if err := l.chooseFamily(); err != nil {
		return layout{}, err
	}
	if f.Kind.classic() {
		return l, nil
	}
	if !(f.FPR >= MinFPR && f.FPR <= MaxFPR) { // not a number is out of range too
		return layout{}, fmt.Errorf("false positive rate %v: use %v to %v", f.FPR, MinFPR, MaxFPR)
	}
	if f.Kind == KindCounting && f.CounterBits != 4 && f.CounterBits != 8 && f.CounterBits != 16 {
		return layout{}, fmt.Errorf("counters of %d bits: use 4, 8 or 16", f.CounterBits)
	}
	if f.Kind == KindFuse {
		if least := bloom.FuseFPR(bloom.MaxFuseWidth); f.FPR < least {
			return layout{}, fmt.Errorf("false positive rate %v: a fuse filter has %.2g at best: use that or more, or the kind %s", f.FPR, least, KindSized)
		}
		return l, nil
	}
	_, err := l.family(l.capacity(0), make([]byte, hashfamily.KeySize))
	return l, err
}

// chooseFamily reads the family's name, which has to go with the kind.
func (l *layout) chooseFamily() (err error) {
	if l.Family == "" {
		l.Family = l.Kind.DefaultFamily()
	}
	if l.Kind == KindFuse {
		if l.Family != "" {
			return fmt.Errorf("filter kind %s has its own hash and takes no hash family %s: leave the family out, or use one of the kinds %s",
				KindFuse, l.Family, kindNames([]Kind{KindSized, KindCounting}))
		}
		return nil
	}
	if l.spec, err = hashfamily.ParseSpec(l.Family); err != nil {
		return err
	}
	if l.spec.Textbook() {
		return fmt.Errorf("hash family %s serves only to compare in the laboratory: it misses every low rate; use %s", l.spec, KindSized.DefaultFamily())
	}
	if l.Kind.TakesFamily(l.spec) {
		return nil
	}
	var others []Kind
	for _, k := range Kinds() {
		if k.TakesFamily(l.spec) {
			others = append(others, k)
		}
	}
	return fmt.Errorf("filter kind %s takes no hash family %s: use classic or some of its hashes, or one of the kinds %s",
		l.Kind, l.spec, kindNames(others))
}

// kindNames lists kinds as words.
func kindNames(kinds []Kind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
