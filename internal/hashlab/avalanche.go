package hashlab

import (
	"context"
	"math"
	"math/bits"
	"math/rand/v2"

	"gonum.org/v1/gonum/mathext"
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
// returns no rows for a corpus of empty keys. [correctAvalanche] corrects the
// p-values for the other rows of the run.
func measureAvalanche(ctx context.Context, c *Corpus, subjects []hashSubject, seed uint64, full bool) []Avalanche {
	want := avalancheKeys
	if full {
		want = avalancheKeysFull
	}
	keys := newFlipKeys(cutKeys(c.Keys, want, stream(seed, "avalanche", c.Name)))
	if keys == nil {
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

// flipKeys is different keys of one length whose bits are flipped.
type flipKeys struct {
	keys   [][]byte
	length int

	// counted has for each input bit the set of keys that count. If both a key and
	// the key with that bit flipped are there, as with numbers in a row, only one of
	// them counts: both have the same difference of values, and tests would take one
	// sample for two.
	counted [][]uint64
}

// newFlipKeys returns different keys of one length, or nil if there are none.
func newFlipKeys(keys [][]byte) *flipKeys {
	if len(keys) == 0 {
		return nil
	}
	f := &flipKeys{keys: keys, length: len(keys[0])}
	there := make(map[string]bool, len(keys))
	for _, key := range keys {
		there[string(key)] = true
	}
	other := make([]byte, f.length)
	for in := range 8 * f.length {
		set := make([]uint64, (len(keys)+63)/64)
		for i, key := range keys {
			copy(other, key)
			other[in/8] ^= 1 << (in % 8)
			if key[in/8]>>(in%8)&1 == 0 || !there[string(other)] {
				set[i/64] |= 1 << (i % 64)
			}
		}
		f.counted = append(f.counted, set)
	}
	return f
}

// flipSet is which output bits flipped with one input bit: for each output bit the
// set of keys.
type flipSet struct {
	keys   int // that count
	counts [64]int
	sets   [64][]uint64
}

// flip fills the set with the effect of an input bit. Whole has the hashes of the
// keys.
func (f *flipKeys) flip(set *flipSet, in int, sum func([]byte) uint64, whole []uint64) {
	set.keys, set.counts = 0, [64]int{}
	key := make([]byte, f.length)
	for w, counted := range f.counted[in] {
		set.keys += bits.OnesCount64(counted)
		var block [64]uint64
		for ; counted != 0; counted &= counted - 1 {
			i := 64*w + bits.TrailingZeros64(counted)
			copy(key, f.keys[i])
			key[in/8] ^= 1 << (in % 8)
			block[i%64] = sum(key) ^ whole[i]
		}
		transpose(&block)
		for out, flipped := range block {
			set.sets[out][w] = flipped
			set.counts[out] += bits.OnesCount64(flipped)
		}
	}
}

// transpose makes bit i of word j from bit j of word i (H. S. Warren, "Hacker's
// Delight", section 7-3).
func transpose(words *[64]uint64) {
	mask := uint64(1)<<32 - 1
	for half := 32; half > 0; half /= 2 {
		for i := 0; i < 64; i = (i + half + 1) &^ half {
			swap := (words[i]>>half ^ words[i+half]) & mask
			words[i] ^= swap << half
			words[i+half] ^= swap
		}
		mask ^= mask << (half / 2)
	}
}

// avalanche flips each bit of keys.
func avalanche(ctx context.Context, s hashSubject, f *flipKeys) (Avalanche, bool) {
	whole, done := s.sums(ctx, f.keys)
	if !done {
		return Avalanche{}, false
	}
	var set flipSet
	for out := range set.sets {
		set.sets[out] = make([]uint64, (len(f.keys)+63)/64)
	}
	row := flipCount{Avalanche: Avalanche{Subject: s.Subject, KeyBytes: f.length, Keys: len(f.keys)}, worstP: 1}
	for in := range f.counted {
		if ctx.Err() != nil {
			return Avalanche{}, false
		}
		f.flip(&set, in, s.sum, whole)
		row.count(in, &set, s.bits)
		row.independence(in, &set, s.bits)
	}
	return row.finish(s.bits), true
}

// flipCount sums up the effects of input bits. The worst cell and the most unlikely
// one may differ, since the number of keys that count differs by input bit.
type flipCount struct {
	Avalanche
	worstP    float64 // of the most unlikely cell
	tested    float64 // input bits and pairs of output bits
	chiSquare float64 // of the most unlikely of these
}

// count adds the effect of an input bit on each output bit. It rounds each cell of
// the matrix to thousandths: chance alone moves it by some hundredths.
func (a *flipCount) count(in int, set *flipSet, width int) {
	parts := make([]float64, width)
	for out, count := range set.counts[:width] {
		part := float64(count) / float64(set.keys)
		parts[out] = math.Round(part*1000) / 1000
		bias := math.Abs(float64(2*count-set.keys)) / float64(set.keys)
		a.MeanBias += bias
		if bias > a.WorstBias {
			a.WorstBias, a.WorstIn, a.WorstOut = bias, in, out
		}
		a.worstP = min(a.worstP, coinP(count, set.keys))
		if count == 0 {
			a.Never++
		}
	}
	a.Flips = append(a.Flips, parts)
}

// coinP returns the probability that a fair coin thrown n times shows heads at least
// as far from n/2 times as count is.
func coinP(count, n int) float64 {
	few := min(count, n-count)
	if 2*few == n {
		return 1
	}
	// P(X ≤ few), twice for both sides.
	return min(1, 2*mathext.RegIncBeta(float64(n-few), float64(few+1), 0.5))
}

// independence adds the correlation of each two output bits when an input bit flips
// (A. F. Webster and S. E. Tavares, "On the Design of S-Boxes", CRYPTO 1985). A
// pair counts only if each cell of its table of two by two expects enough keys for
// χ²: bits that always or never flip have no correlation.
func (a *flipCount) independence(in int, set *flipSet, width int) {
	n := float64(set.keys)
	var rare [64]float64 // how often the rarer of flipping and not flipping is
	for out, count := range set.counts[:width] {
		rare[out] = float64(min(count, set.keys-count))
	}
	for x := range width {
		for y := x + 1; y < width; y++ {
			if rare[x]*rare[y] < leastExpected*n {
				continue
			}
			both := 0
			for w, flipped := range set.sets[x] {
				both += bits.OnesCount64(flipped & set.sets[y][w])
			}
			cx, cy := float64(set.counts[x]), float64(set.counts[y])
			r := math.Abs(n*float64(both)-cx*cy) / math.Sqrt(cx*(n-cx)*cy*(n-cy))
			a.BICMean += r
			a.tested++
			if r > a.BICWorst {
				a.BICWorst, a.BICIn, a.BICOut1, a.BICOut2 = r, in, x, y
			}
			a.chiSquare = max(a.chiSquare, n*r*r)
		}
	}
}

// finish returns the row. Its p-values are those of the worst of so many cells and
// pairs (Bonferroni).
func (a *flipCount) finish(width int) Avalanche {
	cells := float64(len(a.Flips) * width)
	a.MeanBias /= cells
	a.Never /= cells
	a.Noise = math.Sqrt(2 / (math.Pi * float64(a.Keys)))
	a.WorstP = min(1, cells*a.worstP)
	a.BICP = 1
	if a.tested > 0 {
		a.BICMean /= a.tested
		a.BICTested = a.tested / (cells * float64(width-1) / 2)
		a.BICP = min(1, a.tested*chiSquareP(a.chiSquare, 1))
	}
	return a.Avalanche
}

// correctAvalanche corrects the p-values of all rows of the run. The worst bit and
// the worst pair are two questions, each corrected on its own.
func correctAvalanche(rows []Avalanche) {
	worst, bic := make([]float64, len(rows)), make([]float64, len(rows))
	for i, a := range rows {
		worst[i], bic[i] = a.WorstP, a.BICP
	}
	worst, bic = holm(worst), holm(bic)
	for i := range rows {
		rows[i].WorstP, rows[i].BICP = worst[i], bic[i]
	}
}
