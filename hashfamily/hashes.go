package hashfamily

import "math/bits"

// The functions below are plain loops, one for each hash, so that each can be compared
// with its published definition. h is the hash so far, c the next byte.

// RS multiplies by a number that changes from byte to byte:
//
//	h = 0, a = 63689; for each byte: h = h·a + c, a = a·378551
//
// Source: after the universal string hash of Robert Sedgewick's "Algorithms in
// C", whose multiplier changes likewise; constants from Partow's library.
//
// Weak: linear in the bytes. All multipliers are odd, so the lowest bit of the
// hash is the parity of the bytes' lowest bits, and its lowest j bits depend only on
// the bytes' lowest j bits.
func RS(key []byte) uint32 {
	const b = 378551
	a := uint32(63689)
	h := uint32(0)
	for _, c := range key {
		h = h*a + uint32(c)
		a *= b
	}
	return h
}

// JS mixes by shifts in both directions:
//
//	h = 1315423911 (0x4E67C6A7); for each byte: h = h xor (h·2^5 + c + ⌊h/2^2⌋)
//
// Source: Justin Sobel, in Partow's library.
//
// Weak: the step is not one to one, so different keys can collide while a common
// tail is read; a byte enters in the low bits and needs about five more bytes to reach
// the top ones, so short keys share those.
func JS(key []byte) uint32 {
	h := uint32(1315423911)
	for _, c := range key {
		h ^= h<<5 + uint32(c) + h>>2
	}
	return h
}

// PJW shifts by four bits and folds what leaves the low 28 back into bits 4 to 7:
//
//	h = 0; for each byte: h = h·2^4 + c; g = top four bits of h;
//	if g is not 0: h = (h xor ⌊g/2^24⌋) with the top four bits cleared
//
// Source: Peter J. Weinberger of AT&T Bell Laboratories; hashpjw in Aho, Sethi
// and Ullman, "Compilers: Principles, Techniques, and Tools" (1986), section
// 7.6.
//
// Weak: has only 28 bits. A byte of eight bits enters every four bits, so neighbours
// overlap ("ab" and "bR" collide). Keys of up to three bytes stay below 2^17. In 32
// bits it is the same function as [ELF].
func PJW(key []byte) uint32 {
	const top = 0xF0000000
	h := uint32(0)
	for _, c := range key {
		h = h<<4 + uint32(c)
		if g := h & top; g != 0 {
			h = (h ^ g>>24) &^ top
		}
	}
	return h
}

// ELF computes the hash of symbol names in ELF object files:
//
//	h = 0; for each byte: h = h·2^4 + c; g = top four bits of h;
//	h = h xor ⌊g/2^24⌋; the top four bits of h are cleared
//
// Source: System V Application Binary Interface, "Hash Table" (elf_hash).
//
// Weak: as [PJW], since it is the same function: if g is 0 both leave h unchanged,
// else both fold and clear it the same way. In a family with PJW it adds cost and no
// information.
func ELF(key []byte) uint32 {
	h := uint32(0)
	for _, c := range key {
		h = h<<4 + uint32(c)
		g := h & 0xF0000000
		h ^= g >> 24
		h &^= g
	}
	return h
}

// BKDR computes the polynomial in 131 over the bytes:
//
//	h = 0; for each byte: h = 131·h + c
//
// Source: named for Brian Kernighan and Dennis Ritchie, whose "The C
// Programming Language" (2nd edition, section 6.6) has it with 31; 131 is the
// choice of Partow's library.
//
// Weak: linear in the bytes; the lowest bit is the parity of the bytes' lowest bits;
// leading zero bytes change nothing; keys that differ only in the last byte have
// neighbouring hashes.
func BKDR(key []byte) uint32 {
	h := uint32(0)
	for _, c := range key {
		h = 131*h + uint32(c)
	}
	return h
}

// SDBM computes the polynomial in 65599, written with shifts (65599 = 2^6 + 2^16 - 1):
//
//	h = 0; for each byte: h = c + h·2^6 + h·2^16 - h
//
// Source: Ozan Yigit's sdbm, a public-domain database library after ndbm.
//
// Weak: as [BKDR], which has another multiplier; this one spreads better and fills
// 32 bits after three bytes.
func SDBM(key []byte) uint32 {
	h := uint32(0)
	for _, c := range key {
		h = uint32(c) + h<<6 + h<<16 - h
	}
	return h
}

// DJB computes the polynomial in 33 with a start value:
//
//	h = 5381; for each byte: h = h·2^5 + h + c
//
// Source: Daniel J. Bernstein, posted to the newsgroup comp.lang.c.
//
// Weak: 33 is less than the range of a byte, so short texts collide ("Ez" and "FY"),
// also in the middle of otherwise equal keys; the lowest bit is the complement of the
// parity of the bytes' lowest bits.
func DJB(key []byte) uint32 {
	h := uint32(5381)
	for _, c := range key {
		h = h<<5 + h + uint32(c)
	}
	return h
}

// DEK rotates by five and adds the byte by exclusive or. It starts with the key's
// length in bytes (modulo 2^32):
//
//	h = length; for each byte: h = (h rotated left by 5) xor c
//
// Source: Partow's library, which credits Donald E. Knuth, "The Art of Computer
// Programming", volume 3, section 6.4.
//
// Weak: linear over exclusive or. Eight-bit bytes enter every five bits, so neighbours
// overlap ("an" and "c." collide); 32 steps are five whole turns, so bytes 32 apart
// can be exchanged; keys of up to four bytes stay below 2^23. Cut to 28 bits it loses
// the information in the top four.
func DEK(key []byte) uint32 {
	h := uint32(len(key))
	for _, c := range key {
		h = bits.RotateLeft32(h, 5) ^ uint32(c)
	}
	return h
}

// BP shifts by seven and adds the byte by exclusive or:
//
//	h = 0; for each byte: h = h·2^7 xor c
//
// Source: Partow's library, which names no author or publication.
//
// Weak: bits that are shifted out are lost. The 32 bits depend only on the last five
// bytes (on the low four bits of the first of them), and modulo 2^28 on the last
// four: all names that end in ".com" have one index.
func BP(key []byte) uint32 {
	h := uint32(0)
	for _, c := range key {
		h = h<<7 ^ uint32(c)
	}
	return h
}

// FNV multiplies by 0x811C9DC5 and adds the byte by exclusive or:
//
//	h = 0; for each byte: h = h·0x811C9DC5 xor c
//
// Source: Partow's library. It is not the FNV-1 of Glenn Fowler, Landon Curt
// Noll and Kiem-Phong Vo, which starts from 0x811C9DC5 (the offset basis) and
// multiplies by the prime 0x01000193; hash/fnv gives other values.
//
// Weak: starts from 0, so leading zero bytes change nothing, which FNV-1's start value
// prevents; the multiplier was not chosen for that use; the lowest bit is the parity of
// the bytes' lowest bits.
func FNV(key []byte) uint32 {
	h := uint32(0)
	for _, c := range key {
		h = h*0x811C9DC5 ^ uint32(c)
	}
	return h
}

// AP alternates between two steps; i counts the bytes from 0:
//
//	h = 0xAAAAAAAA; for each byte:
//	i even: h = h xor h·2^7 xor c·⌊h/2^3⌋
//	i odd:  h = h xor not (h·2^11 + (c xor ⌊h/2^5⌋))
//
// Source: Arash Partow's own, in his library.
//
// Weak: neither step is one to one, so different keys can collide while a common tail
// is read; a byte at an even place acts only through the product with h, and not at
// all while h is below 8.
func AP(key []byte) uint32 {
	h := uint32(0xAAAAAAAA)
	for i, c := range key {
		if i&1 == 0 {
			h ^= h<<7 ^ uint32(c)*(h>>3)
		} else {
			h ^= ^(h<<11 + (uint32(c) ^ h>>5))
		}
	}
	return h
}
