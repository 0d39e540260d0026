//go:build !linux

package bloom

// newScratch is memory for a while, all zero.
func newScratch(size int) (b []byte, release func()) {
	return make([]byte, size), func() {}
}
