package hashlab

import (
	"context"
	"math"
	"math/bits"
)

const (
	// leastExpected is the expected number of keys that a bucket needs for χ² to
	// follow its distribution (W. G. Cochran, Biometrics 10, 1954).
	leastExpected = 5

	// maxBuckets is the greatest number of buckets, a table that fits the cache.
	maxBuckets = 1 << 16
)

// measureUniformity tests each hash's lowest and highest bits over a corpus of at
// least 10 keys. [correctUniformity] adds the p-values that depend on the other
// tests of the run.
func measureUniformity(ctx context.Context, c *Corpus, subjects []hashSubject) []Uniformity {
	width := bits.Len(uint(len(c.Keys)/leastExpected)) - 1
	if width < 1 {
		return nil
	}
	width = min(width, bits.Len(maxBuckets)-1)
	return gather(ctx, len(subjects), func(i int) ([]Uniformity, bool) {
		s := subjects[i]
		low, high := make([]uint32, 1<<width), make([]uint32, 1<<width)
		for i, key := range c.Keys {
			if stopped(ctx, i) {
				return nil, false
			}
			h := s.sum(key)
			low[h&(1<<width-1)]++
			high[h>>(s.bits-width)]++
		}
		row := Uniformity{Corpus: c.Name, Subject: s.Subject, Keys: len(c.Keys)}
		return []Uniformity{row.test("low", low), row.test("high", high)}, true
	})
}

// test returns the row of the test of the buckets' counts.
func (u Uniformity) test(part string, counts []uint32) Uniformity {
	u.Part, u.Buckets, u.DF = part, len(counts), len(counts)-1
	u.ChiSquare = chiSquare(counts, u.Keys)
	u.P = chiSquareP(u.ChiSquare, u.DF)
	u.Effect = math.Sqrt(u.ChiSquare / float64(u.Keys))
	u.ExcessEffect = math.Sqrt(max(0, u.ChiSquare-float64(u.DF)) / float64(u.Keys))
	return u
}

// chiSquare returns Pearson's χ² of counts, whose sum is keys, against equal ones.
func chiSquare(counts []uint32, keys int) float64 {
	expected := float64(keys) / float64(len(counts))
	sum := 0.0
	for _, n := range counts {
		d := float64(n) - expected
		sum += d * d
	}
	return sum / expected
}

// correctUniformity sets the p-values that are corrected for all tests of the run,
// which are rows. Too uneven and too even are two questions, each corrected on its
// own.
func correctUniformity(rows []Uniformity) {
	uneven, even := make([]float64, len(rows)), make([]float64, len(rows))
	for i, u := range rows {
		uneven[i], even[i] = u.P, chiSquareBelow(u.ChiSquare, u.DF)
	}
	uneven, even = holm(uneven), holm(even)
	for i := range rows {
		rows[i].PHolm, rows[i].PEven = uneven[i], even[i]
	}
}
