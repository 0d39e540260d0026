package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

var zmm = vectors{
	4, ZMM,
	func(from, to Op) { VMOVDQA32(from, to) },
	func(from, to Op) { VMOVDQU32(from, to) },
	func(part, from, to Op) { VEXTRACTI32X4(part, from, to) },
}

const greater = 6 // of VPCMPUD: not less or equal

// avx512 is what the parts of the AVX-512 kernel share.
type avx512 struct {
	h         [hashes]reg.VecVirtual
	next      reg.VecVirtual // nextRS, and so on, sixteen times
	bkdr      reg.VecVirtual
	sdbm      reg.VecVirtual
	fnv       reg.VecVirtual
	fold      reg.VecVirtual
	low, one  reg.VecVirtual
	lengths   reg.VecVirtual // of the lanes' keys
	place     reg.VecVirtual // of the byte that comes next, in all lanes
	addresses Mem            // of the lanes' keys
	masks     Mem            // a uint32 a lane: which of 16 bytes are the key's
}

func hashAVX512() {
	TEXT("hashAVX512", 0, signature)
	k := &avx512{addresses: AllocLocal(16 * 8), masks: AllocLocal(16 * 4)}
	k.lanes()
	k.next, k.bkdr, k.sdbm, k.fnv = number(nextRS), number(byBKDR), number(bySDBM), number(byFNV)
	k.fold, k.low, k.one = number(foldPJW), number(0xFF), number(1)
	k.place = number(0)
	for i := range k.h {
		k.h[i] = number(map[int]uint32{multiplier: startRS, js: startJS, djb: startDJB, ap: startAP}[i])
	}
	zmm.move(k.lengths, k.h[dek])
	k.read()
	VPANDD(number(keepPJW), k.h[pjw], k.h[pjw])
	zmm.move(k.h[pjw], k.h[elf])
	writeRows(k.h, zmm)
	VZEROUPPER()
	RET()
}

// number returns a vector of sixteen times x.
func number(x uint32) reg.VecVirtual {
	z := ZMM()
	if x == 0 {
		VPXORD(z, z, z)
		return z
	}
	r := GP32()
	MOVL(U32(x), r)
	VPBROADCASTD(r, z)
	return z
}

// lanes fills in addresses and lengths.
func (k *avx512) lanes() {
	keys, order := Load(Param("keys"), GP64()), Load(Param("order"), GP64())
	lane := GP64()
	XORQ(lane, lane)
	Label("lane")
	at := header(keys, order, lane)
	x := GP64()
	MOVQ(Mem{Base: at}, x)
	MOVQ(x, k.addresses.Idx(lane, 8))
	MOVL(Mem{Base: at, Disp: 8}, x.As32())
	MOVL(x.As32(), k.masks.Idx(lane, 4))
	INCQ(lane)
	CMPQ(lane, U8(16))
	JLT(LabelRef("lane"))
	k.lengths = ZMM()
	VMOVDQU32(k.masks, k.lengths)
}

// read hashes the keys. Masks let a lane keep its hashes from the key's end on;
// they cost nothing here.
func (k *avx512) read() {
	most := Load(Param("most"), GP64())
	at := GP64()
	XORQ(at, at)
	TESTQ(most, most)
	JZ(LabelRef("done"))
	Label("slab")
	words := k.load(at)
	c := ZMM()
	for i := range slab {
		word := words[i/4]
		switch i % 4 {
		case 0:
			VPANDD(k.low, word, c)
		case 3:
			VPSRLD(U8(24), word, c)
		default:
			VPSRLD(U8(8*(i%4)), word, c)
			VPANDD(k.low, c, c)
		}
		k.step(i%2 == 1, c)
		DECQ(most)
		if i < slab-1 {
			JZ(LabelRef("done"))
		}
	}
	LEAQ(Mem{Base: at, Disp: slab}, at) // leaves the flags
	JNZ(LabelRef("slab"))
	Label("done")
}

// load returns 16 bytes of each key from at on, and zeros after the key's
// end: a masked load does not read the bytes that it omits.
func (k *avx512) load(at reg.Register) [4]reg.VecVirtual {
	left, none := ZMM(), number(0)
	VPSUBD(k.place, k.lengths, left)
	VPMAXSD(none, left, left)
	VPSLLVD(left, k.one, left) // 0 where more than 31 are left: then all 16 bits are set below
	VPSUBD(k.one, left, left)
	VMOVDQU32(left, k.masks)
	var v [4]reg.VecVirtual
	for j := range v {
		v[j] = ZMM()
		VPXORD(v[j], v[j], v[j]) // so that avo knows all of it to begin here
		for part := range 4 {
			lane := 4*part + j
			mask, key := K(), GP64()
			KMOVW(k.masks.Offset(4*lane), mask)
			MOVQ(k.addresses.Offset(8*lane), key)
			x := v[j].AsX()
			if part > 0 {
				x = XMM()
			}
			VMOVDQU8_Z(Mem{Base: key, Index: at, Scale: 1}, mask, x)
			if part > 0 {
				VINSERTI32X4(U8(part), x, v[j], v[j])
			}
		}
	}
	return transpose(v, zmm)
}

// step takes one byte of each key.
func (k *avx512) step(odd bool, c reg.VecVirtual) {
	h, t, u := k.h, ZMM(), ZMM()
	on := K() // the lanes that have this byte
	VPCMPUD(U8(greater), k.place, k.lengths, on)
	VPADDD(k.one, k.place, k.place)

	VPMULLD(h[multiplier], h[rs], t)
	VPADDD(c, t, on, h[rs])
	VPMULLD(k.next, h[multiplier], h[multiplier]) // for all lanes alike

	VPSLLD(U8(5), h[js], t)
	VPSRLD(U8(2), h[js], u)
	VPADDD(c, t, t)
	VPADDD(u, t, t)
	VPXORD(t, h[js], on, h[js])

	VPSLLD(U8(4), h[pjw], t) // pushes out the top four bits of the step before
	VPADDD(c, t, t)
	VPSRLD(U8(24), t, u)
	VPANDD(k.fold, u, u)
	VPXORD(u, t, on, h[pjw])

	VPMULLD(k.bkdr, h[bkdr], t)
	VPADDD(c, t, on, h[bkdr])

	VPMULLD(k.sdbm, h[sdbm], t)
	VPADDD(c, t, on, h[sdbm])

	VPSLLD(U8(5), h[djb], t)
	VPADDD(c, t, t)
	VPADDD(t, h[djb], on, h[djb])

	VPROLD(U8(5), h[dek], t)
	VPXORD(c, t, on, h[dek])

	VPSLLD(U8(7), h[bp], t)
	VPXORD(c, t, on, h[bp])

	VPMULLD(k.fnv, h[fnv], t)
	VPXORD(c, t, on, h[fnv])

	if odd {
		VPSRLD(U8(5), h[ap], t)
		VPXORD(c, t, t)
		VPSLLD(U8(11), h[ap], u)
		VPADDD(u, t, t)
		VPTERNLOGD(U8(0xC3), t, t, on, h[ap]) // h = not (h xor t)
	} else {
		VPSRLD(U8(3), h[ap], t)
		VPMULLD(c, t, t)
		VPSLLD(U8(7), h[ap], u)
		VPTERNLOGD(U8(0x96), t, u, on, h[ap]) // h = h xor t xor u
	}
}
