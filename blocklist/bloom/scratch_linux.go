package bloom

import "golang.org/x/sys/unix"

// newScratch is memory for a while, all zero. The runtime knows nothing of it: it
// is given back the moment it is released, not when the garbage collector comes
// by, and large bitmaps that are needed for a second do not make the heap's next
// cycle later.
//
// It is asked for in huge pages, since random bits touch every page: filling the
// bitmap of 100,000 keys takes half the time (BenchmarkPart). The mark goes with
// the memory.
func newScratch(size int) (b []byte, release func()) {
	if size == 0 {
		return nil, func() {}
	}
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return make([]byte, size), func() {}
	}
	// Whatever the error is, the memory is as good as before.
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	return b, func() { _ = unix.Munmap(b) } // it is a map
}
