package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// lanes fills in addresses, lengths and last. A key below 16 bytes is copied to
// short, so that 16 bytes can be loaded without reading beyond the key: nothing
// says that there is memory.
func (k *avx2) lanes() {
	keys, order := Load(Param("keys"), GP64()), Load(Param("order"), GP64())
	lane := GP64()
	XORQ(lane, lane)
	Label("lane")
	at := header(keys, order, lane)
	key, n := GP64(), GP64()
	MOVQ(Mem{Base: at}, key)
	MOVQ(Mem{Base: at, Disp: 8}, n)
	MOVL(n.As32(), k.lengths.Idx(lane, 4))
	SUBQ(U8(slab), n)
	JGE(LabelRef("set"))

	ADDQ(U8(slab), n)
	low, high, shift := GP64(), GP64(), reg.RCX
	XORQ(low, low)
	XORQ(high, high)
	CMPQ(n, U8(8))
	JLT(LabelRef("below8"))
	MOVQ(Mem{Base: key}, low)
	MOVQ(Mem{Base: key, Index: n, Scale: 1, Disp: -8}, high)
	MOVQ(U32(15), shift) // the bytes that overlap, but one
	SUBQ(n, shift)
	SHLQ(U8(3), shift)
	SHRQ(reg.CL, high)
	SHRQ(U8(8), high) // apart, as 64 bits at once cannot be shifted away
	JMP(LabelRef("copy"))

	Label("below8")
	part := GP64()
	CMPQ(n, U8(4))
	JLT(LabelRef("below4"))
	MOVL(Mem{Base: key}, low.As32())
	MOVL(Mem{Base: key, Index: n, Scale: 1, Disp: -4}, part.As32())
	MOVQ(n, shift)
	SUBQ(U8(4), shift)
	SHLQ(U8(3), shift)
	SHLQ(reg.CL, part)
	ORQ(part, low)
	JMP(LabelRef("copy"))

	Label("below4")
	TESTQ(n, n)
	JZ(LabelRef("copy"))
	MOVBLZX(Mem{Base: key}, low.As32())
	middle := GP64()
	MOVQ(n, middle)
	SHRQ(U8(1), middle)
	MOVBLZX(Mem{Base: key, Index: middle, Scale: 1}, part.As32())
	MOVQ(middle, shift)
	SHLQ(U8(3), shift)
	SHLQ(reg.CL, part)
	ORQ(part, low)
	MOVBLZX(Mem{Base: key, Index: n, Scale: 1, Disp: -1}, part.As32())
	MOVQ(n, shift)
	DECQ(shift)
	SHLQ(U8(3), shift)
	SHLQ(reg.CL, part)
	ORQ(part, low)

	Label("copy")
	both := XMM()
	VMOVQ(low, both)
	VPINSRQ(U8(1), high, both, both)
	MOVQ(lane, n)
	SHLQ(U8(4), n)
	LEAQ(k.short.Idx(n, 1), key)
	VMOVDQU(both, Mem{Base: key})
	XORQ(n, n)
	Label("set")
	MOVQ(key, k.addresses.Idx(lane, 8))
	MOVL(n.As32(), k.last.Idx(lane, 4))
	INCQ(lane)
	CMPQ(lane, U8(8))
	JLT(LabelRef("lane"))
}
