package hashfamily

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
)

// Params are the parameters of a family.
type Params struct {
	// M is the number of bits, from 1 to [Spec.MaxM]; a power of two for the
	// weighted families ([Spec.FitM] finds one).
	M uint64

	// K is the number of index functions. Zero means the family's own number
	// ([Spec.K]), or [DefaultK] if it has none.
	K int

	// Key is the secret of a keyed family ([Spec.Keyed]), [KeySize] bytes. It is
	// copied. Families without a key ignore it.
	Key []byte
}

// DefaultK is the number of index functions if both the family and [Params] leave
// it open.
const DefaultK = 7

// Spec is a family whose size is not known yet. [ParseSpec] makes it; the zero Spec
// names no family. It is immutable.
type Spec struct {
	name        string
	k           int // 0 if it is free
	maxK        int
	maxM        uint64
	powerOfTwo  bool // M must be one
	keyed       bool
	independent int  // how many of the k act independently at best; 0 means all
	resembling  bool // AnyKeys is false
	stride      bool // by triple hashing
	build       func(p Params) (Family, error)
}

// kinds are the words that names of families begin with, in the order of error
// messages. Arguments are the text after the word's colon.
var kinds = []struct {
	word  string
	usage string
	parse func(arguments string) (Spec, error)
	bare  bool // without arguments
}{
	{classicName, `"classic" or "classic:RS,JS,AP"`, parseClassic, false},
	{classic9Name, `"classic9"`, parseClassic9, true},
	{weightedName, `"weighted" or "weighted:5,7,11"`, parseWeighted, false},
	{digestName, `"digest"`, parseDigest, true},
	{doubleName, `"double" or "double:murmur3"`, parseDouble, false},
	{seededName, `"seeded" or "seeded:42"`, parseSeeded, false},
}

// ParseSpec reads the name of a family:
//
//	classic             the eleven classic hashes
//	classic:RS,JS,AP    some of them, in this order
//	classic9            nine of them: without ELF and BP
//	weighted            the seeds 5, 7, 11, 13, 31, 37, 61
//	weighted:5,7,11     other seeds, from 1 to 2^32-1, none twice
//	digest              MD5, divided repeatedly
//	double              HighwayHash-128 under a secret key
//	double:murmur3      MurmurHash3-128, without a key
//	double:plain        the same, with the indices of textbooks, to compare
//	seeded              XXH3-64 with the seed 0
//	seeded:SEED         with another seed, from 0 to 2^64-1
//
// An unknown name is an error that lists these.
func ParseSpec(name string) (Spec, error) {
	word, arguments, colon := strings.Cut(name, ":")
	var usages []string
	for _, kind := range kinds {
		if kind.word == word && !(colon && kind.bare) {
			if colon && arguments == "" {
				return Spec{}, fmt.Errorf("hash family %q: nothing follows the colon: use %s", name, kind.usage)
			}
			return kind.parse(arguments)
		}
		usages = append(usages, kind.usage)
	}
	return Spec{}, fmt.Errorf("hash family %q is unknown: use %s", name, strings.Join(usages, ", "))
}

// String returns the canonical name. Parsed again it gives the same Spec, and it is
// the Name of the families that New makes.
func (s Spec) String() string { return s.name }

// K returns the number of index functions if it is fixed, or 0 if it is free, from
// 1 to MaxK.
func (s Spec) K() int { return s.k }

// MaxK returns the largest number of index functions, which is K if that is fixed.
func (s Spec) MaxK() int { return s.maxK }

// MaxM returns the largest number of bits.
func (s Spec) MaxM() uint64 { return s.maxM }

// FitM returns the smallest number of bits, at least m, that the family takes.
// Above MaxM it is an error.
func (s Spec) FitM(m uint64) (uint64, error) {
	if m > s.maxM {
		return 0, fmt.Errorf("hash family %s: %d bits: use 1 to %d", s.name, m, s.maxM)
	}
	m = max(m, 1)
	if s.powerOfTwo {
		m = 1 << bits.Len64(m-1)
	}
	return m, nil
}

// Keyed reports whether the family needs a secret key.
func (s Spec) Keyed() bool { return s.keyed }

// Independent returns how many of k index functions act independently at best: all
// k, except in classic families (see [Classic.Independent]).
func (s Spec) Independent(k int) int {
	if s.independent != 0 {
		return min(k, s.independent)
	}
	return k
}

// AnyKeys reports whether the formulas for the false positive rate hold for any
// keys. They do not for the classic and the weighted families, whose indices for keys
// that resemble each other are related.
func (s Spec) AnyKeys() bool { return !s.resembling }

// Excess returns an estimate of how much the false positive rate of a filter of m bits
// exceeds fill^k at most. It is 0 except for families of triple hashing (see [Double]),
// where it matters in small filters with a low rate.
func (s Spec) Excess(m uint64, k int, fill float64) float64 {
	if !s.stride {
		return 0
	}
	return excess(m, k, fill)
}

// Predictable reports whether a false positive rate can be computed at all: not for
// one or two classic hashes (see [Classic.Predictable]).
func (s Spec) Predictable() bool { return !s.Classic() || s.independent > unpredictable }

// Textbook reports whether the family serves only to compare with others: it misses
// the rate of the formulas for any keys.
func (s Spec) Textbook() bool { return s.name == plainName }

// New makes the family. If p is wrong, the error says what would be right.
func (s Spec) New(p Params) (Family, error) {
	if s.build == nil {
		return nil, errors.New("hash family: the Spec is empty: make it with ParseSpec")
	}
	if p.K == 0 {
		p.K = s.k
		if p.K == 0 {
			p.K = DefaultK
		}
	}
	if s.k != 0 && p.K != s.k {
		return nil, fmt.Errorf("hash family %s: %d hashes: it has %d, use that number or none", s.name, p.K, s.k)
	}
	return s.build(p)
}

// made returns a family as an interface. On an error the interface is nil.
func made[F Family](f F, err error) (Family, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Classic reports whether the family is a classic one, whole or in part.
func (s Spec) Classic() bool { return strings.HasPrefix(s.name, classicName) }

// Seeded reports whether the family is a seeded one, whose size is that of
// [SeededSize].
func (s Spec) Seeded() bool { return strings.HasPrefix(s.name, seededName) }
