package hashlab

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
)

// stream returns a source of random numbers for the work that the labels name. It
// depends on seed and labels alone, so that no result depends on the order of the
// work or the number of cores.
func stream(seed uint64, labels ...any) *rand.Rand {
	sum := fnv.New64a()
	for _, label := range labels {
		fmt.Fprintf(sum, "%v\x00", label)
	}
	return rand.New(rand.NewPCG(seed, sum.Sum64()))
}
