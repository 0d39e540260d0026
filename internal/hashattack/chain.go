package hashattack

import (
	"math/bits"

	"spamgate/hashfamily"
)

// maxName and maxLabel are the longest domain name and label, in bytes (RFC 1035,
// section 2.3.4; a name's text is two shorter than its form in a packet).
const (
	maxName  = 253
	maxLabel = 63
)

// low28 keeps what the classic filter uses of a hash: 2^28 bits are addressed.
const low28 = 1<<28 - 1

// chain is a hash as a chain of states, one step a byte, as an attacker needs it. A
// state has 32 bits, of which those of mask determine the next and the previous
// ones.
type chain struct {
	name string
	sum  func(key []byte) uint32 // the hash itself, of package hashfamily
	mask uint32

	// start returns the state before the first byte of a key of so many bytes.
	start func(length int) uint32

	// run returns the state after text, whose first byte is the at-th of the key.
	run func(h uint32, text []byte, pos int) uint32

	// undo is the inverse of run, or nil if a step may have no or several inverses.
	undo func(h uint32, text []byte, pos int) uint32

	// back appends the states from which the byte c at position at leads to h. It
	// is nil if there is undo.
	back func(dst []uint32, h uint32, c byte, pos int) []uint32
}

// chains returns the different hashes by name, without ELF, which is PJW, and BP,
// which needs no search: it depends on the last four bytes of a name.
func chains() map[string]*chain {
	always := func(h uint32) func(int) uint32 { return func(int) uint32 { return h } }
	all := []*chain{
		linear("RS", hashfamily.RS, 0, 63689, 378551),
		linear("BKDR", hashfamily.BKDR, 0, 131, 1),
		linear("SDBM", hashfamily.SDBM, 0, 65599, 1),
		linear("DJB", hashfamily.DJB, 5381, 33, 1),
		{name: "FNV", sum: hashfamily.FNV, mask: low28, start: always(0), run: runFNV, undo: undoFNV},
		{name: "DEK", sum: hashfamily.DEK, mask: ^uint32(0), start: func(n int) uint32 { return uint32(n) }, run: runDEK, undo: undoDEK},
		{name: "PJW", sum: hashfamily.PJW, mask: low28, start: always(0), run: runPJW, back: backPJW},
		{name: "JS", sum: hashfamily.JS, mask: ^uint32(0), start: always(1315423911), run: runJS, back: backJS},
		{name: "AP", sum: hashfamily.AP, mask: ^uint32(0), start: always(0xAAAAAAAA), run: runAP, back: backAP},
	}
	byName := map[string]*chain{}
	for _, c := range all {
		byName[c.name] = c
	}
	return byName
}

// unrun appends the states from which text leads to h.
func (c *chain) unrun(dst []uint32, h uint32, text []byte, pos int) []uint32 {
	if c.undo != nil {
		return append(dst, c.undo(h, text, pos))
	}
	base := len(dst)
	dst = append(dst, h)
	for i := len(text) - 1; i >= 0; i-- {
		done := len(dst)
		for _, after := range dst[base:done] {
			dst = c.back(dst, after, text[i], pos+i)
		}
		dst = dst[:base+copy(dst[base:], dst[done:])]
	}
	return dst
}

// linear returns a hash with the step h = h·multiplier + byte. The multiplier is
// multiplied by factor at each position; both are odd, so that they have inverses
// modulo 2^32.
func linear(name string, sum func([]byte) uint32, start, multiplier, factor uint32) *chain {
	var forth, back [maxName]uint32
	for i := range forth {
		forth[i], back[i] = multiplier, inverse(multiplier)
		multiplier *= factor
	}
	return &chain{
		name:  name,
		sum:   sum,
		mask:  low28, // a carry never affects lower bits
		start: func(int) uint32 { return start },
		run: func(h uint32, text []byte, pos int) uint32 {
			for i, c := range text {
				h = h*forth[pos+i] + uint32(c)
			}
			return h
		},
		undo: func(h uint32, text []byte, pos int) uint32 {
			for i := len(text) - 1; i >= 0; i-- {
				h = (h - uint32(text[i])) * back[pos+i]
			}
			return h
		},
	}
}

// inverse returns the inverse of an odd number modulo 2^32, by Newton's iteration:
// odd·odd is 1 modulo 8, and each round doubles the number of correct bits.
func inverse(odd uint32) uint32 {
	x := odd
	for range 4 {
		x *= 2 - odd*x
	}
	return x
}

const fnvMultiplier = 0x811C9DC5

var fnvInverse = inverse(fnvMultiplier)

func runFNV(h uint32, text []byte, _ int) uint32 {
	for _, c := range text {
		h = h*fnvMultiplier ^ uint32(c)
	}
	return h
}

func undoFNV(h uint32, text []byte, _ int) uint32 {
	for i := len(text) - 1; i >= 0; i-- {
		h = (h ^ uint32(text[i])) * fnvInverse
	}
	return h
}

func runDEK(h uint32, text []byte, _ int) uint32 {
	for _, c := range text {
		h = bits.RotateLeft32(h, 5) ^ uint32(c)
	}
	return h
}

func undoDEK(h uint32, text []byte, _ int) uint32 {
	for i := len(text) - 1; i >= 0; i-- {
		h = bits.RotateLeft32(h^uint32(text[i]), -5)
	}
	return h
}
