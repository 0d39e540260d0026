package hashfamily

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// MaxClassicBits is the largest m of a classic family: its hashes have 32 bits
// and reach no further. (PJW and ELF yield 28 bits and reach no further than
// 2^28 of any m.)
const MaxClassicBits = 1 << 32

// classicName is the name of the whole classic family, and what stands before
// the colon in the name of a part of it.
const classicName = "classic"

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

// Classic is the family of the classic hashes, or of some of them: the i-th
// index is the i-th hash modulo m. It is immutable.
type Classic struct {
	name string
	m    uint64
	mask uint64 // m-1 where m is a power of two, else 0
	ids  []id
}

// NewClassic makes the classic family over m bits, from 1 to [MaxClassicBits].
// Names chooses hashes, and their order; none means all eleven. An unknown or
// repeated name is an error that lists the names there are.
//
// Where m is no power of two, hash mod m favours the lower indices a little: by
// less than one part in 2^32/m.
func NewClassic(m uint64, names ...string) (*Classic, error) {
	if m < 1 || m > MaxClassicBits {
		return nil, fmt.Errorf("hash family classic: %d bits: use 1 to %d", m, uint64(MaxClassicBits))
	}
	all := classicNames()
	if len(names) == 0 {
		names = all
	}
	c := &Classic{name: classicName, m: m}
	if m&(m-1) == 0 {
		c.mask = m - 1
	}
	for i, name := range names {
		place := slices.Index(all, name)
		if place < 0 {
			return nil, fmt.Errorf("hash family classic: no hash %q: choose from %s", name, strings.Join(all, ","))
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("hash family classic: hash %q stands twice: name each at most once of %s", name, strings.Join(all, ","))
		}
		c.ids = append(c.ids, id(place))
	}
	if !slices.Equal(names, all) {
		c.name += ":" + strings.Join(names, ",")
	}
	return c, nil
}

// ParseFamily makes the family that spec names, over m bits: "classic" for all
// eleven hashes, "classic:RS,JS,AP" for those in that order. The result's Name
// gives the same family when parsed again.
func ParseFamily(spec string, m uint64) (Family, error) {
	kind, names, some := strings.Cut(spec, ":")
	if kind != classicName {
		return nil, fmt.Errorf(`hash family %q is unknown: use "classic", or some of its hashes as in "classic:RS,JS,AP"`, spec)
	}
	var list []string
	if some {
		if names == "" {
			return nil, errors.New(`hash family "classic:" names no hash: use "classic" for all, or name some of ` + strings.Join(classicNames(), ","))
		}
		list = strings.Split(names, ",")
	}
	// Not returned as it comes: a nil *Classic is no nil Family.
	c, err := NewClassic(m, list...)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// classicNames is the names of Hashes, in order.
func classicNames() []string {
	var names []string
	for _, h := range Hashes() {
		names = append(names, h.Name)
	}
	return names
}

// Name is "classic", or "classic:" and the hashes' names with commas between.
func (c *Classic) Name() string { return c.name }

// K is the number of hashes.
func (c *Classic) K() int { return len(c.ids) }

// M is the number of bits.
func (c *Classic) M() uint64 { return c.m }

// HashName is the name of the i-th hash, for 0 ≤ i < K.
func (c *Classic) HashName(i int) string { return Hashes()[c.ids[i]].Name }

// Independent is how many of the hashes act independently on mail addresses,
// from 1 to K: PJW and ELF are one function, and BP beside others adds next to
// nothing, since it sees the last four bytes of a key alone. It is 9 for all
// eleven.
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

// Index is the i-th hash of key, modulo M.
func (c *Classic) Index(i int, key []byte) uint64 { return c.reduce(sum(c.ids[i], key)) }

// AppendIndices appends the indices of key for all hashes, in order.
func (c *Classic) AppendIndices(dst []uint64, key []byte) []uint64 {
	for _, h := range c.ids {
		dst = append(dst, c.reduce(sum(h, key)))
	}
	return dst
}

// reduce is hash mod m.
func (c *Classic) reduce(hash uint32) uint64 {
	if c.mask != 0 {
		return uint64(hash) & c.mask
	}
	return uint64(hash) % c.m
}

// sum calls the hash by its id. The calls are direct on purpose: through a
// table of function values the compiler could not see that the key stays where
// it is, and a caller's key on the stack would be moved to the heap, one
// allocation a lookup.
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
