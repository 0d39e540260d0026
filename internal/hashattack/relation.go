package hashattack

import "math/bits"

// The steps of PJW, JS and AP are not one to one: a state has no, one or several
// previous states, one on average over all bytes. Listing them is cheap all the
// same, since a bit of the result depends on few higher bits.

func runPJW(h uint32, text []byte, _ int) uint32 {
	for _, c := range text {
		h = h<<4 + uint32(c)
		h = (h ^ h>>28<<4) & low28
	}
	return h
}

// backPJW tries all values of the four bits that were folded. The lowest four bits
// of h are the byte's, so that a wrong byte has no previous state and a right one
// sixteen.
func backPJW(dst []uint32, h uint32, c byte, _ int) []uint32 {
	if (h^uint32(c))&15 != 0 {
		return dst
	}
	for g := range uint32(16) {
		sum := g<<28 | (h ^ g<<4)
		dst = append(dst, (sum-uint32(c))>>4)
	}
	return dst
}

func runJS(h uint32, text []byte, _ int) uint32 {
	for _, c := range text {
		h ^= h<<5 + uint32(c) + h>>2
	}
	return h
}

// backJS solves h' = h xor (h·2^5 + c + ⌊h/2^2⌋) for h. It tries all values of the
// lowest two bits; each round of the equation gives two more.
func backJS(dst []uint32, h uint32, c byte, _ int) []uint32 {
	for low := range uint32(4) {
		x := low
		for range 15 {
			x = (x^h-x<<5-uint32(c))<<2 | low
		}
		if x^(x<<5+uint32(c)+x>>2) == h {
			dst = append(dst, x)
		}
	}
	return dst
}

func runAP(h uint32, text []byte, pos int) uint32 {
	for i, c := range text {
		if (pos+i)&1 == 0 {
			h = evenAP(h, c)
		} else {
			h = oddAP(h, c)
		}
	}
	return h
}

func evenAP(h uint32, c byte) uint32 { return h ^ h<<7 ^ uint32(c)*(h>>3) }

func oddAP(h uint32, c byte) uint32 { return h ^ ^(h<<11 + (uint32(c) ^ h>>5)) }

func backAP(dst []uint32, h uint32, c byte, pos int) []uint32 {
	switch {
	case pos&1 == 1:
		return backOddAP(dst, h, c)
	case bits.TrailingZeros8(c) < 3:
		return backEvenAP(dst, h, c)
	default:
		return deepenAP(dst, 0, 0, h, c)
	}
}

// backOddAP solves h' = h xor not (h·2^11 + (c xor ⌊h/2^5⌋)). It tries all values of
// five bits; each round gives five more.
func backOddAP(dst []uint32, h uint32, c byte) []uint32 {
	for low := range uint32(32) {
		x := low
		for range 6 {
			x = (^(x^h)-x<<11^uint32(c))<<5 | low
		}
		if oddAP(x, c) == h {
			dst = append(dst, x)
		}
	}
	return dst
}

// backEvenAP solves h' = h xor h·2^7 xor c·⌊h/2^3⌋ where c = 2^v·o with o odd and v
// below 3. It tries all values of three bits; each round divides by c and gives 3-v
// more.
func backEvenAP(dst []uint32, h uint32, c byte) []uint32 {
	v := bits.TrailingZeros8(c)
	o := inverse(uint32(c) >> v)
	rounds := (29 + 2 - v) / (3 - v)
	for low := range uint32(8) {
		x := low
		for range rounds {
			x = (x^h^x<<7)>>v*o<<3 | low
		}
		if evenAP(x, c) == h {
			dst = append(dst, x)
		}
	}
	return dst
}

// deepenAP is backEvenAP for v of 3 and more. There a bit of h' depends on no higher
// bit of h, so that x, of which the lowest n bits are known, grows bit by bit.
func deepenAP(dst []uint32, x uint32, n int, h uint32, c byte) []uint32 {
	if n == 32 {
		return append(dst, x)
	}
	for _, y := range [2]uint32{x, x | 1<<n} {
		if (evenAP(y, c)^h)<<(31-n) == 0 {
			dst = deepenAP(dst, y, n+1, h, c)
		}
	}
	return dst
}
