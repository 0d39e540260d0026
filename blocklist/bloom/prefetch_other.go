//go:build !amd64

package bloom

// prefetch does nothing: here the reads of [Look.Maybe] are the first. They do not
// wait for each other either.
func prefetch(*byte, uint32, uint32, uint32) {}
