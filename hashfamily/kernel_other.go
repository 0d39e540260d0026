//go:build !amd64

package hashfamily

// fastest is the implementation that SumBatch uses.
const fastest = portable

// paths lists the implementations that this processor supports.
func paths() []path { return []path{portable} }

// sumBatch implements SumBatch.
func sumBatch(_ path, dst [][11]uint32, keys [][]byte) { sumEach(dst, keys) }
