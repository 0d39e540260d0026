package hashfamily

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// MaxClassicBits is the largest m of a classic family, whose hashes have 32 bits.
// (PJW and ELF have 28 bits and never reach beyond 2^28 of any m.)
const MaxClassicBits = 1 << 32

// classicName is the name of the whole classic family, and the word before the colon
// in the name of a part of it. classic9Name names the part without ELF, which equals
// PJW, and without BP, which depends on four bytes of the key.
const (
	classicName  = "classic"
	classic9Name = "classic9"
)

// classic9 lists the hashes of the family classic9, in order.
var classic9 = []string{"RS", "JS", "PJW", "BKDR", "SDBM", "DJB", "DEK", "FNV", "AP"}

// id is a classic hash's place in the order of Hashes.
type id uint8

const (
	idRS id = iota
	idJS
	idPJW
	idELF
	idBKDR
	idSDBM
	idDJB
	idDEK
	idBP
	idFNV
	idAP
)

// Classic is the family of the classic hashes, or of some of them: index i is hash
// i modulo m. It is immutable.
type Classic struct {
	shape
	mask uint64 // m-1 if m is a power of two, else 0
	ids  []id
}

// NewClassic returns the classic family over m bits, from 1 to [MaxClassicBits].
// Names selects hashes and their order; without names it has all eleven. An unknown
// or repeated name is an error that lists the valid names.
//
// If m is not a power of two, hash mod m slightly favours the lower indices: by
// less than one part in 2^32/m.
func NewClassic(m uint64, names ...string) (*Classic, error) {
	all := classicNames()
	if len(names) == 0 {
		names = all
	}
	shape, err := newShape(classicName, m, len(names), MaxClassicBits, math.MaxInt)
	if err != nil {
		return nil, err
	}
	c := &Classic{shape: shape}
	if m&(m-1) == 0 {
		c.mask = m - 1
	}
	for i, name := range names {
		place := slices.Index(all, name)
		if place < 0 {
			return nil, fmt.Errorf("hash family classic: unknown hash %q: choose from %s", name, strings.Join(all, ","))
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("hash family classic: hash %q is repeated: name each of %s at most once", name, strings.Join(all, ","))
		}
		c.ids = append(c.ids, id(place))
	}
	c.name = nameClassic(names)
	return c, nil
}

// nameClassic returns the name of the classic family of these hashes.
func nameClassic(names []string) string {
	switch {
	case slices.Equal(names, classicNames()):
		return classicName
	case slices.Equal(names, classic9):
		return classic9Name
	default:
		return classicName + ":" + strings.Join(names, ",")
	}
}

// classicNames returns the names of Hashes, in order.
func classicNames() []string {
	var names []string
	for _, h := range Hashes() {
		names = append(names, h.Name)
	}
	return names
}

// parseClassic parses the names of hashes after "classic:"; none means all.
func parseClassic(arguments string) (Spec, error) {
	names := classicNames()
	if arguments != "" {
		names = strings.Split(arguments, ",")
	}
	// A family of one bit checks the names.
	c, err := NewClassic(1, names...)
	if err != nil {
		return Spec{}, err
	}
	return Spec{
		name: c.name, k: c.K(), maxK: c.K(), maxM: MaxClassicBits, independent: c.Independent(), resembling: true,
		build: func(p Params) (Family, error) { return made(NewClassic(p.M, names...)) },
	}, nil
}

// parseClassic9 returns the Spec of "classic9".
func parseClassic9(string) (Spec, error) { return parseClassic(strings.Join(classic9, ",")) }

// HashName returns the name of the i-th hash, for 0 ≤ i < K.
func (c *Classic) HashName(i int) string { return Hashes()[c.ids[i]].Name }

// Independent returns how many of the hashes act independently at best, from 1 to
// K. PJW and ELF are one function, and BP adds next to nothing to other hashes, since
// it depends only on the last four bytes of a key. It is 9 for all eleven. With keys
// that resemble each other fewer act independently, as package bloom tells.
func (c *Classic) Independent() int {
	n := len(c.ids)
	if slices.Contains(c.ids, idPJW) && slices.Contains(c.ids, idELF) {
		n--
	}
	if n > 1 && slices.Contains(c.ids, idBP) {
		n--
	}
	return n
}

// unpredictable is the largest number of independent classic hashes of which no
// false positive rate can be predicted.
const unpredictable = 2

// Predictable reports whether the false positive rate of a filter over the family
// can be computed. Of one or two hashes it cannot: it depends on the keys alone. BP
// has few values, and passes every key that ends like an entry.
func (c *Classic) Predictable() bool { return c.Independent() > unpredictable }

// Index returns hash i of key, modulo M.
func (c *Classic) Index(i int, key []byte) uint64 { return c.reduce(sum(c.ids[i], key)) }

// AppendIndices appends the indices of key for all hashes, in order.
func (c *Classic) AppendIndices(dst []uint64, key []byte) []uint64 {
	if len(c.ids) >= fusedFrom {
		all := Sum11(key)
		n, k := len(dst), len(c.ids)
		dst = slices.Grow(dst, k)[:n+k]
		c.putIndices(dst[n:], &all)
		return dst
	}
	for _, h := range c.ids {
		dst = append(dst, c.reduce(sum(h, key)))
	}
	return dst
}

// reduce returns hash mod m.
func (c *Classic) reduce(hash uint32) uint64 {
	if c.mask != 0 {
		return uint64(hash) & c.mask
	}
	return uint64(hash) % c.m
}

// sum computes the hash with this id. It calls the functions directly: with a table
// of function values the compiler could not see that the key stays where it is, and
// would move a caller's key from the stack to the heap, one allocation a lookup.
func sum(h id, key []byte) uint32 {
	switch h {
	case idRS:
		return RS(key)
	case idJS:
		return JS(key)
	case idPJW:
		return PJW(key)
	case idELF:
		return ELF(key)
	case idBKDR:
		return BKDR(key)
	case idSDBM:
		return SDBM(key)
	case idDJB:
		return DJB(key)
	case idDEK:
		return DEK(key)
	case idBP:
		return BP(key)
	case idFNV:
		return FNV(key)
	default:
		return AP(key)
	}
}
