package bloom

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size of a huge page, and what it is aligned to, on amd64 and on
// arm64 with pages of 4 KiB. A kernel with larger ones finds none inside.
const hugePage = 2 << 20

// useHugePages asks the kernel to gather what lies inside b in huge pages.
//
// MADV_COLLAPSE does so once, now. MADV_HUGEPAGE would mark the addresses: when
// the bitmap is garbage and the runtime returns a part of it, the kernel would
// go on to fill that up to whole huge pages, and the process would grow. The mark
// could only be taken back by a finalizer, which keeps a dead bitmap for another
// cycle of the garbage collector.
func useHugePages(b []byte) {
	if inside := wholeHugePages(b); len(inside) > 0 {
		// Whatever the error is, the memory is as good as before.
		_ = unix.Madvise(inside, unix.MADV_COLLAPSE)
	}
}

// wholeHugePages is the part of b that begins and ends where a huge page does.
func wholeHugePages(b []byte) []byte {
	start := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % hugePage)
	if start >= len(b) {
		return nil
	}
	b = b[start:]
	return b[:len(b)-len(b)%hugePage]
}
