package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

var ymm = vectors{2, YMM, VMOVDQA, VMOVDQU, VEXTRACTI128}

const rodata = 8 | 16 // RODATA|NOPTR

// spread returns a read-only vector of eight times x.
func spread(name string, x uint32) Mem {
	m := GLOBL(name, rodata)
	for i := range 8 {
		DATA(4*i, U32(x))
	}
	return m
}

// pickByte returns a read-only VPSHUFB mask that makes of every uint32 its byte i.
func pickByte(i int) Mem {
	m := GLOBL(fmt.Sprintf("byte%d", i), rodata)
	for lane := range 8 {
		DATA(4*lane, U32(0x80808000|uint32(lane%4*4+i)))
	}
	return m
}

// slide returns a read-only table of VPSHUFB masks: from byte n on, n from 0 to 16,
// the one that moves 16 bytes down by n and fills with zeros.
func slide() Mem {
	m := GLOBL("slide", rodata)
	for i := range uint64(16) {
		DATA(int(i), U8(i))
	}
	DATA(16, U64(0x8080808080808080))
	DATA(24, U64(0x8080808080808080))
	return m
}

// avx2 is what the parts of the AVX2 kernel share.
type avx2 struct {
	h         [hashes]reg.VecVirtual
	c, t, u   reg.VecVirtual // the bytes of this step, and room to compute
	next      Mem            // nextRS, and so on, spread
	bkdr      Mem
	sdbm      Mem
	fnv       Mem
	fold      Mem
	keep      Mem
	ones      Mem
	pick      [4]Mem
	slide     Mem
	addresses Mem // of the lanes' keys, or of their copies in short
	lengths   Mem // of the lanes' keys
	last      Mem // where the last 16 bytes of each begin
	short     Mem // keys below 16 bytes, padded with zeros
	words     Mem // a slab: four words of eight lanes
}

func hashAVX2() {
	k := &avx2{
		next: spread("nextRS", nextRS), bkdr: spread("byBKDR", byBKDR), sdbm: spread("bySDBM", bySDBM),
		fnv: spread("byFNV", byFNV), fold: spread("foldPJW", foldPJW), keep: spread("keepPJW", keepPJW),
		ones: spread("ones", 0xFFFFFFFF), slide: slide(),
	}
	for i := range k.pick {
		k.pick[i] = pickByte(i)
	}
	starts := map[int]Mem{
		multiplier: spread("startRS", startRS), js: spread("startJS", startJS),
		djb: spread("startDJB", startDJB), ap: spread("startAP", startAP),
	}
	TEXT("hashAVX2", 0, signature)
	k.addresses, k.lengths, k.last = AllocLocal(8*8), AllocLocal(8*4), AllocLocal(8*4)
	k.short, k.words = AllocLocal(8*16), AllocLocal(4*32)
	k.lanes()
	for i := range k.h {
		k.h[i] = YMM()
		if start, ok := starts[i]; ok {
			VMOVDQU(start, k.h[i])
		} else if i == dek {
			VMOVDQU(k.lengths, k.h[i])
		} else {
			VPXOR(k.h[i], k.h[i], k.h[i])
		}
	}
	k.read()
	VPAND(k.keep, k.h[pjw], k.h[pjw])
	ymm.move(k.h[pjw], k.h[elf])
	writeRows(k.h, ymm)
	VZEROUPPER()
	RET()
}

// read hashes the keys: each word that all of them have without masks, which cost
// a blend a hash, and what is left with them.
func (k *avx2) read() {
	least, most := Load(Param("least"), GP64()), Load(Param("most"), GP64())
	at := GP64()
	XORQ(at, at)
	TESTQ(most, most)
	JZ(LabelRef("done"))

	Label("slab")
	k.load(at)
	place := GP64()
	XORQ(place, place)
	k.c, k.t, k.u = YMM(), YMM(), YMM()
	word := YMM()

	Label("word")
	VMOVDQU(k.words.Idx(place, 1), word)
	ADDQ(U8(4), at)
	CMPQ(at, least)
	JGT(LabelRef("part"))
	for i := range 4 {
		VPSHUFB(k.pick[i], word, k.c)
		k.step(i%2 == 1,
			func(hash int) reg.VecVirtual { return k.h[hash] },
			func(int, reg.VecVirtual) {})
	}
	CMPQ(at, most)
	JGE(LabelRef("done"))
	Label("further")
	ADDQ(U8(32), place)
	CMPQ(place, U32(slab*8))
	JLT(LabelRef("word"))
	JMP(LabelRef("slab"))

	Label("part")
	SUBQ(U8(4), at)
	for i := range 4 {
		INCQ(at)
		over := YMM()
		VMOVD(at.As32(), over.AsX())
		VPBROADCASTD(over.AsX(), over)
		VPCMPGTD(k.lengths, over, over)
		VPSHUFB(k.pick[i], word, k.c)
		k.step(i%2 == 1,
			func(int) reg.VecVirtual { return k.t },
			func(hash int, from reg.VecVirtual) { VPBLENDVB(over, k.h[hash], from, k.h[hash]) })
		CMPQ(at, most)
		JGE(LabelRef("done"))
	}
	JMP(LabelRef("further"))
	Label("done")
}

// load loads 16 bytes of each key from at on into words, and zeros after the key's
// end. Near the end it loads from last and moves the bytes down.
func (k *avx2) load(at reg.GPVirtual) {
	slide := GP64()
	LEAQ(k.slide, slide)
	most := GP64()
	MOVQ(U32(slab), most)
	var v [4]reg.VecVirtual
	for j := range v {
		v[j] = YMM()
		VPXOR(v[j], v[j], v[j]) // so that avo knows all of it to begin here
		for part := range 2 {
			lane := 4*part + j
			key, from, down := GP64(), GP64(), GP64()
			MOVQ(k.addresses.Offset(8*lane), key)
			MOVL(k.last.Offset(4*lane), from.As32())
			CMPQ(from, at)
			CMOVQGT(at, from)
			MOVQ(at, down)
			SUBQ(from, down)
			CMPQ(down, most)
			CMOVQGT(most, down)
			x := v[j].AsX()
			if part == 1 {
				x = XMM()
			}
			VMOVDQU(Mem{Base: key, Index: from, Scale: 1}, x)
			VPSHUFB(Mem{Base: slide, Index: down, Scale: 1}, x, x)
			if part == 1 {
				VINSERTI128(U8(1), x, v[j], v[j])
			}
		}
	}
	for i, word := range transpose(v, ymm) {
		VMOVDQU(word, k.words.Offset(32*i))
	}
}

// step takes one byte of each key. It computes a hash into to(hash) and then
// calls done.
func (k *avx2) step(odd bool, to func(hash int) reg.VecVirtual, done func(hash int, from reg.VecVirtual)) {
	h, c, t, u := k.h, k.c, k.t, k.u

	d := to(rs)
	VPMULLD(h[multiplier], h[rs], d)
	VPADDD(c, d, d)
	done(rs, d)
	VPMULLD(k.next, h[multiplier], h[multiplier]) // for all lanes alike

	VPSLLD(U8(5), h[js], t)
	VPSRLD(U8(2), h[js], u)
	VPADDD(c, t, t)
	VPADDD(u, t, t)
	d = to(js)
	VPXOR(t, h[js], d)
	done(js, d)

	d = to(pjw) // the top four bits stay: the next shift pushes them out
	VPSLLD(U8(4), h[pjw], d)
	VPADDD(c, d, d)
	VPSRLD(U8(24), d, u)
	VPAND(k.fold, u, u)
	VPXOR(u, d, d)
	done(pjw, d)

	d = to(bkdr)
	VPMULLD(k.bkdr, h[bkdr], d)
	VPADDD(c, d, d)
	done(bkdr, d)

	d = to(sdbm)
	VPMULLD(k.sdbm, h[sdbm], d)
	VPADDD(c, d, d)
	done(sdbm, d)

	VPSLLD(U8(5), h[djb], t)
	VPADDD(c, t, t)
	d = to(djb)
	VPADDD(t, h[djb], d)
	done(djb, d)

	VPSLLD(U8(5), h[dek], t)
	VPSRLD(U8(27), h[dek], u)
	VPXOR(c, t, t)
	d = to(dek)
	VPXOR(u, t, d)
	done(dek, d)

	d = to(bp)
	VPSLLD(U8(7), h[bp], d)
	VPXOR(c, d, d)
	done(bp, d)

	d = to(fnv)
	VPMULLD(k.fnv, h[fnv], d)
	VPXOR(c, d, d)
	done(fnv, d)

	if odd {
		VPSRLD(U8(5), h[ap], t)
		VPXOR(c, t, t)
		VPSLLD(U8(11), h[ap], u)
		VPADDD(u, t, t)
		VPXOR(k.ones, t, t)
	} else {
		VPSRLD(U8(3), h[ap], t)
		VPMULLD(c, t, t)
		VPSLLD(U8(7), h[ap], u)
		VPXOR(u, t, t)
	}
	d = to(ap)
	VPXOR(t, h[ap], d)
	done(ap, d)
}
