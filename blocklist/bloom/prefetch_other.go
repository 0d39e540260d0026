//go:build !amd64

package bloom

// prefetch does nothing: the first reads are those of [Look.Maybe]. They do not
// wait for each other either.
func prefetch(*byte, uint32, uint32, uint32) {}
