//go:build !amd64

package hashfamily

// fastest is the way that SumBatch takes.
const fastest = portable

// paths lists the ways that this processor has.
func paths() []path { return []path{portable} }

// sumBatch is SumBatch.
func sumBatch(_ path, dst [][11]uint32, keys [][]byte) { sumEach(dst, keys) }
