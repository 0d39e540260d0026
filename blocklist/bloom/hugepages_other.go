//go:build !linux

package bloom

// useHugePages does nothing: there is no advice to give here.
func useHugePages([]byte) {}
