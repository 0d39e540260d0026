package hashlab

import (
	"context"
	"math"
	"math/bits"
	"math/rand/v2"
)

const (
	// avalancheBytes is the greatest length of a key; longer ones are cut.
	avalancheBytes = 16

	// avalancheKeys is the number of keys, avalancheKeysFull that of the full run.
	// Round numbers keep the reported numbers short.
	avalancheKeys     = 2000
	avalancheKeysFull = 10_000
)

// measureAvalanche flips each bit of keys of a corpus, for each hash. It takes keys
// at random, cut to their first 16 bytes, or to less if too few are so long. It
// returns no rows for a corpus of empty keys.
func measureAvalanche(ctx context.Context, c *Corpus, subjects []hashSubject, seed uint64, full bool) []Avalanche {
	want := avalancheKeys
	if full {
		want = avalancheKeysFull
	}
	keys := cutKeys(c.Keys, want, stream(seed, "avalanche", c.Name))
	if len(keys) == 0 {
		return nil
	}
	return gather(ctx, len(subjects), func(i int) ([]Avalanche, bool) {
		row, done := avalanche(ctx, subjects[i], keys)
		row.Corpus = c.Name
		return []Avalanche{row}, done
	})
}

// cutKeys returns up to want different keys, cut to one length: the largest, up to
// avalancheBytes, that gives enough different keys, or the one that gives most.
func cutKeys(keys [][]byte, want int, random *rand.Rand) [][]byte {
	order := random.Perm(len(keys))
	var most [][]byte
	for length := avalancheBytes; length > 0; length-- {
		seen := make(map[string]bool, want)
		var cut [][]byte
		for _, i := range order {
			if len(keys[i]) < length || seen[string(keys[i][:length])] {
				continue
			}
			seen[string(keys[i][:length])] = true
			cut = append(cut, keys[i][:length])
			if len(cut) == want {
				return cut
			}
		}
		if len(cut) > len(most) {
			most = cut
		}
	}
	return most
}

// avalanche flips each bit of keys, which have one length.
func avalanche(ctx context.Context, s hashSubject, keys [][]byte) (Avalanche, bool) {
	length := len(keys[0])
	flips := make([][64]uint32, 8*length)
	key := make([]byte, length)
	for i := range keys {
		if i%64 == 0 && ctx.Err() != nil {
			return Avalanche{}, false
		}
		copy(key, keys[i])
		whole := s.sum(key)
		for bit := range flips {
			key[bit/8] ^= 1 << (bit % 8)
			changed := s.sum(key) ^ whole
			key[bit/8] ^= 1 << (bit % 8)
			for ; changed != 0; changed &= changed - 1 {
				flips[bit][bits.TrailingZeros64(changed)]++
			}
		}
	}
	row := Avalanche{Subject: s.Subject, KeyBytes: length, Keys: len(keys)}
	row.tally(flips, s.bits)
	return row, true
}

// tally turns counts of flips into parts of the keys, and sums them up. It rounds
// each cell to thousandths: chance alone moves it by some hundredths.
func (a *Avalanche) tally(flips [][64]uint32, width int) {
	n := float64(a.Keys)
	never := 0
	for bit := range flips {
		parts := make([]float64, width)
		for out, count := range flips[bit][:width] {
			part := float64(count) / n
			parts[out] = math.Round(part*1000) / 1000
			bias := math.Abs(2*part - 1)
			a.MeanBias += bias
			a.WorstBias = max(a.WorstBias, bias)
			if count == 0 {
				never++
			}
		}
		a.Flips = append(a.Flips, parts)
	}
	cells := float64(len(flips) * width)
	a.MeanBias /= cells
	a.Never = float64(never) / cells
	a.Noise = math.Sqrt(2 / (math.Pi * n))
}
