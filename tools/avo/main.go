// Command avo generates the assembly of hashfamily's batch kernels,
// hashfamily/kernel_amd64.s. It is a module of its own, so that spamgate does not depend
// on it. Run it with
//
//	go generate ./hashfamily
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64")
	hashAVX2()
	hashAVX512()
	Generate()
}

// signature is the signature of both kernels. They hash one key in each lane: those
// whose indices are in order. The shortest has least and the longest most bytes.
const signature = "func(dst *[11]uint32, keys *[]byte, order *uint16, least, most int)"

// The places of the hashes in a row of dst. While bytes are read, the vector of ELF
// holds the next multiplier of RS, since ELF equals PJW.
const (
	rs = iota
	js
	pjw
	elf
	bkdr
	sdbm
	djb
	dek
	bp
	fnv
	ap
	hashes

	multiplier = elf
)

// The constants of the definitions in hashfamily/hashes.go.
const (
	startRS  = 63689 // of the multiplier
	startJS  = 1315423911
	startDJB = 5381
	startAP  = 0xAAAAAAAA

	nextRS = 378551 // the multiplier's own
	byBKDR = 131
	bySDBM = 65599
	byFNV  = 0x811C9DC5

	foldPJW = 0xF0 // where the top four bits land, 24 bits lower
	keepPJW = 1<<28 - 1
)

const (
	sliceSize = 24         // of a []byte: its address, length and capacity
	rowSize   = hashes * 4 // of a [11]uint32
	slab      = 16         // bytes of each key that are read at once
)

// vectors are registers of one kernel's size.
type vectors struct {
	parts   int // of 16 bytes: four lanes each
	new     func() reg.VecVirtual
	move    func(from, to Op)
	store   func(from, to Op)       // of part 0
	extract func(part, from, to Op) // of a part above 0
}

// transpose turns four vectors, whose 16-byte parts hold four words of a lane each,
// into four vectors that hold one word of every lane, and vice versa. Lane 4p+j is part
// p of vector j. It uses one more register.
func transpose(v [4]reg.VecVirtual, vec vectors) [4]reg.VecVirtual {
	a := vec.new()
	VPUNPCKLDQ(v[1], v[0], a)
	VPUNPCKHDQ(v[1], v[0], v[0])
	VPUNPCKLDQ(v[3], v[2], v[1])
	VPUNPCKHDQ(v[3], v[2], v[2])
	VPUNPCKLQDQ(v[1], a, v[3])
	VPUNPCKHQDQ(v[1], a, a)
	VPUNPCKLQDQ(v[2], v[0], v[1])
	VPUNPCKHQDQ(v[2], v[0], v[0])
	return [4]reg.VecVirtual{v[3], a, v[1], v[0]}
}

// header computes the address of the slice header of a lane's key.
func header(keys, order, lane reg.Register) reg.GPVirtual {
	at := GP64()
	MOVWQZX(Mem{Base: order, Index: lane, Scale: 2}, at)
	LEAQ(Mem{Base: at, Index: at, Scale: 2}, at)
	LEAQ(Mem{Base: keys, Index: at, Scale: 8}, at)
	return at
}

// writeRows stores the hashes, one row of dst for each lane: hashes 0 to 3, 4 to 7, and
// 7 to 10, so that nothing after the row is overwritten.
func writeRows(h [hashes]reg.VecVirtual, vec vectors) {
	dst, order := Load(Param("dst"), GP64()), Load(Param("order"), GP64())
	again := vec.new()
	vec.move(h[dek], again)
	groups := [][4]reg.VecVirtual{
		transpose([4]reg.VecVirtual{h[rs], h[js], h[pjw], h[elf]}, vec),
		transpose([4]reg.VecVirtual{h[bkdr], h[sdbm], h[djb], h[dek]}, vec),
		transpose([4]reg.VecVirtual{again, h[bp], h[fnv], h[ap]}, vec),
	}
	for part := range vec.parts {
		for j := range 4 {
			row := GP64()
			MOVWQZX(Mem{Base: order, Disp: 2 * (4*part + j)}, row)
			IMUL3Q(I8(rowSize), row, row)
			ADDQ(dst, row)
			for i, place := range []int{rs, bkdr, dek} {
				from, to := groups[i][j], Mem{Base: row, Disp: 4 * place}
				if part == 0 {
					vec.store(from.AsX(), to)
				} else {
					vec.extract(U8(part), from, to)
				}
			}
		}
	}
}
