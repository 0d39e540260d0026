package bloom

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// newScratch returns zeroed memory outside of Go's heap. It goes back to the system
// when it is released, not at the next garbage collection, and a large bitmap that
// is needed for a second does not delay that.
//
// It is asked for in huge pages, since random bits touch every page: filling the
// bitmap of 100,000 keys takes half the time (BenchmarkPart).
func newScratch(size int) (b []byte, release func()) {
	if size == 0 {
		return nil, func() {}
	}
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return make([]byte, size), func() {}
	}
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // an error costs only speed
	return b, func() { _ = unix.Munmap(b) } // cannot fail: b is a mapping
}

// hugePage is the size and alignment of a huge page on amd64, and on arm64 with
// pages of 4 KiB. A kernel with larger huge pages finds none to make.
const hugePage = 2 << 20

// useHugePages asks the kernel to collect what lies inside b in huge pages.
//
// MADV_COLLAPSE does so once. MADV_HUGEPAGE would mark the addresses: when the
// bitmap is garbage and the runtime returns a part of it, the kernel would still
// fill that up to whole huge pages, and the process would grow.
func useHugePages(b []byte) {
	if inside := wholeHugePages(b); len(inside) > 0 {
		_ = unix.Madvise(inside, unix.MADV_COLLAPSE) // an error costs only speed
	}
}

// wholeHugePages returns the part of b that consists of whole huge pages.
func wholeHugePages(b []byte) []byte {
	start := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % hugePage)
	if start >= len(b) {
		return nil
	}
	b = b[start:]
	return b[:len(b)-len(b)%hugePage]
}
