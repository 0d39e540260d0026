//go:build !linux

package bloom

// newScratch returns zeroed memory.
func newScratch(size int) (b []byte, release func()) { return make([]byte, size), func() {} }

// useHugePages does nothing on this system.
func useHugePages([]byte) {}
