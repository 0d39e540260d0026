package blocklist

import (
	"context"
	"math/rand/v2"
)

// MeasureFPR looks made-up names that no list holds up in the filter, and returns how many
// of them passed. That is the filter's false positive rate as it is, compared with
// [SetStats.FPR], which is computed. The seed makes the names.
//
// The names look like mail domains, since classic hashes are not equally good with all
// keys. Other lookups may go on meanwhile. These are not counted.
func (s *Set) MeasureFPR(ctx context.Context, probes int, seed uint64) (falsePositives int, err error) {
	names := rand.New(rand.NewPCG(seed, 0x6e616d65))
	var key []byte
	for i := range probes {
		if i%1024 == 0 && ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		key = appendName(key[:0], names)
		if !s.filter.mayContain(key) {
			continue
		}
		held, err := s.holds(key)
		if err != nil {
			return 0, err
		}
		if !held {
			falsePositives++
		}
	}
	return falsePositives, nil
}

// holds reports whether any list has the key.
func (s *Set) holds(key []byte) (bool, error) {
	hash := s.filter.hash.Hash(key)
	for i := range s.lists {
		if ok, err := s.lists[i].index.segment.Has(hash, key); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// probeSuffixes end the made-up names, about as often as mail's domains end so.
var probeSuffixes = [...]string{
	".com", ".com", ".com", ".com", ".com", ".net", ".org", ".de", ".co.uk", ".info",
	".ru", ".fr", ".nl", ".it", ".com.br", ".io", ".xyz", ".top", ".online", ".shop",
}

const probeLetters = "aeioubcdfghjklmnprstvwzaeio012-"

// appendName appends a made-up domain of two or three labels and a suffix.
func appendName(b []byte, names *rand.Rand) []byte {
	labels := 1 + names.IntN(2)
	for i := range labels {
		if i > 0 {
			b = append(b, '.')
		}
		for range 6 + names.IntN(10) {
			b = append(b, probeLetters[names.IntN(len(probeLetters))])
		}
	}
	return append(b, probeSuffixes[names.IntN(len(probeSuffixes))]...)
}
