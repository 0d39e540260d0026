package hashfamily

import "math/bits"

// Sum11 computes all eleven classic hashes of key in one pass, in the order of
// [Hashes]. It is faster than eleven calls, since the hashes' steps do not wait for
// each other (BenchmarkEleven). [SumBatch] is faster still for many keys.
//
// It does not keep or change the key, and does not allocate.
func Sum11(key []byte) [11]uint32 {
	// Variables, and each step written out: the compiler would keep a struct of so
	// many fields in memory, where each step waits for the store of the one before.
	var rs, pjw, bkdr, sdbm, bp, fnv uint32
	multiplier, js, djb := uint32(63689), uint32(1315423911), uint32(5381)
	dek, ap := uint32(len(key)), uint32(0xAAAAAAAA)
	for i := 1; i < len(key); i += 2 {
		c := uint32(key[i-1])
		rs = rs*multiplier + c
		multiplier *= 378551
		js = nextJS(js, c)
		pjw = nextPJW(pjw, c)
		bkdr = bkdr*131 + c
		sdbm = sdbm*65599 + c
		djb += djb<<5 + c
		dek = bits.RotateLeft32(dek, 5) ^ c
		bp = bp<<7 ^ c
		fnv = fnv*0x811C9DC5 ^ c
		ap = nextEvenAP(ap, c)

		c = uint32(key[i])
		rs = rs*multiplier + c
		multiplier *= 378551
		js = nextJS(js, c)
		pjw = nextPJW(pjw, c)
		bkdr = bkdr*131 + c
		sdbm = sdbm*65599 + c
		djb += djb<<5 + c
		dek = bits.RotateLeft32(dek, 5) ^ c
		bp = bp<<7 ^ c
		fnv = fnv*0x811C9DC5 ^ c
		ap ^= ^(ap<<11 + (c ^ ap>>5))
	}
	if len(key)%2 == 1 {
		c := uint32(key[len(key)-1])
		rs = rs*multiplier + c
		js = nextJS(js, c)
		pjw = nextPJW(pjw, c)
		bkdr = bkdr*131 + c
		sdbm = sdbm*65599 + c
		djb += djb<<5 + c
		dek = bits.RotateLeft32(dek, 5) ^ c
		bp = bp<<7 ^ c
		fnv = fnv*0x811C9DC5 ^ c
		ap = nextEvenAP(ap, c)
	}
	pjw &= 1<<28 - 1 // and ELF is the same
	return [11]uint32{rs, js, pjw, pjw, bkdr, sdbm, djb, dek, bp, fnv, ap}
}

// nextJS computes a step of [JS].
func nextJS(h, c uint32) uint32 { return h ^ (h<<5 + c + h>>2) }

// nextPJW computes a step of [PJW] without clearing the top four bits: the next
// step shifts them out, and the caller clears those of the last step.
func nextPJW(h, c uint32) uint32 {
	h = h<<4 + c
	return h ^ h>>24&0xF0
}

// nextEvenAP computes a step of [AP] at an even place.
func nextEvenAP(h, c uint32) uint32 { return h ^ h<<7 ^ c*(h>>3) }
