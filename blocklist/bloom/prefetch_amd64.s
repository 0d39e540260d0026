#include "textflag.h"

// func prefetch(bits *byte, first, second, third uint32)
TEXT ·prefetch(SB), NOSPLIT|NOFRAME, $0-20
	MOVQ bits+0(FP), AX
	MOVL first+8(FP), BX
	MOVL second+12(FP), CX
	MOVL third+16(FP), DX
	SHRL $3, BX
	SHRL $3, CX
	SHRL $3, DX
	PREFETCHT0 (AX)(BX*1)
	PREFETCHT0 (AX)(CX*1)
	PREFETCHT0 (AX)(DX*1)
	RET
