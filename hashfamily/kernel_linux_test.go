package hashfamily

import (
	"bytes"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fenced is a page of memory before and behind which there is none: to read or
// write there ends the program.
func fenced(t *testing.T) []byte {
	t.Helper()
	size := os.Getpagesize()
	pages, err := unix.Mmap(-1, 0, 3*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(pages); err != nil {
			t.Error(err)
		}
	})
	for _, fence := range [][]byte{pages[:size], pages[2*size:]} {
		if err := unix.Mprotect(fence, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return pages[size : 2*size]
}

// TestSumBatchStaysInside hashes keys that begin or end where memory does, into
// rows that end where memory does.
func TestSumBatchStaysInside(t *testing.T) {
	text, rows := fenced(t), fenced(t)
	copy(text, bytes.Repeat([]byte("spam@offers.example\xff"), len(text)))
	eachPath(t, func(t *testing.T, p path) {
		for n := range 301 {
			for _, count := range []int{1, 5, 8, 16, 19} {
				var keys [][]byte
				for i := range count {
					end := text[len(text)-n+min(i%3, n):] // up to two bytes shorter
					keys = append(keys, end, text[:n])
				}
				pos := len(rows) - len(keys)*int(unsafe.Sizeof([11]uint32{}))
				dst := unsafe.Slice((*[11]uint32)(unsafe.Pointer(&rows[pos])), len(keys))
				sumBatch(p, dst, keys)
				for i, key := range keys {
					if want := plainSums(key); dst[i] != want {
						t.Fatalf("%d bytes: %v, want %v", len(key), dst[i], want)
					}
				}
			}
		}
	})
}
