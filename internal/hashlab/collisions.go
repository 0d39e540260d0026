package hashlab

import (
	"context"
	"math"
	"math/bits"
	"slices"
)

// classicIndexBits is the number of bits of a hash that the classic filter uses.
const classicIndexBits = 28

// measureCollisions counts the distinct values of each hash over a corpus: modulo
// 2^28, as in the classic filter, modulo 2^32, and in full width.
func measureCollisions(ctx context.Context, c *Corpus, subjects []hashSubject) []Collision {
	return gather(ctx, len(subjects), func(i int) ([]Collision, bool) {
		s := subjects[i]
		values, done := s.sums(ctx, c.Keys)
		if !done {
			return nil, false
		}
		widths := []int{classicIndexBits, 32, s.bits}
		slices.Sort(widths)
		widths = slices.DeleteFunc(slices.Compact(widths), func(bits int) bool { return bits > s.bits })
		var rows []Collision
		for w, distinct := range countDistinct(values, widths) {
			rows = append(rows, Collision{
				Corpus: c.Name, Subject: s.Subject, Bits: widths[w],
				Keys: len(values), Distinct: distinct, Collisions: len(values) - distinct,
				Expected: expectedCollisions(len(values), widths[w]),
			})
		}
		return rows, ctx.Err() == nil
	})
}

// countDistinct returns the numbers of different values modulo 2^width, for each of
// widths, from 1 to 64. It reverses the values' bits and sorts them: since the
// lowest bits then come first, one order serves all widths, and two neighbours
// differ modulo 2^width if fewer than width of their first bits are equal.
func countDistinct(values []uint64, widths []int) []int {
	distinct := make([]int, len(widths))
	for i := range values {
		values[i] = bits.Reverse64(values[i])
	}
	slices.Sort(values)
	for i, v := range values {
		equal := -1
		if i > 0 {
			equal = bits.LeadingZeros64(v ^ values[i-1])
		}
		for w, width := range widths {
			if equal < width {
				distinct[w]++
			}
		}
	}
	return distinct
}

// expectedCollisions returns n minus the expected number of different values among
// n uniform ones of m = 2^width: n - m(1-(1-1/m)^n).
func expectedCollisions(n, width int) float64 {
	keys, m := float64(n), math.Ldexp(1, width)
	if keys/m > 1e-4 {
		return keys + m*math.Expm1(keys*math.Log1p(-1/m))
	}
	// The difference of two nearly equal numbers would lose all digits. The binomial
	// series keeps them: its terms shrink by n/m.
	pairs := keys * (keys - 1) / 2 / m
	triples := pairs * (keys - 2) / 3 / m
	fours := triples * (keys - 3) / 4 / m
	return pairs - triples + fours
}
