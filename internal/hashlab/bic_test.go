package hashlab

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// correctedAvalanche returns the rows of one corpus as a run would have them.
func correctedAvalanche(tb testing.TB, c *Corpus, subjects []hashSubject) []Avalanche {
	tb.Helper()
	rows := measureAvalancheOf(tb, c, subjects)
	correctAvalanche(rows)
	return rows
}

// TestBICOfControls: good hashes have no bit and no pair of bits that chance does
// not explain, over names and over numbers in a row. (XXH3 is not one of them:
// over such keys some of its bits depend on each other.)
func TestBICOfControls(t *testing.T) {
	for _, c := range []*Corpus{comNames(5000), numbers(5000), numbers(2000)} {
		for _, r := range correctedAvalanche(t, c, subjectsNamed(t, "ideal", "HighwayHash", "Murmur3")) {
			if r.WorstP < 0.01 || r.BICP < 0.01 || r.BICTested != 1 || !near(r.BICMean, r.Noise, 0.3) || r.BICWorst > 0.25 {
				t.Errorf("%s over %s: worst bit p = %g; BIC %g, mean %g (noise %g), p = %g, tested %g", r.Name, c.Name, r.WorstP, r.BICWorst, r.BICMean, r.Noise, r.BICP, r.BICTested)
			}
		}
	}
}

// TestPlantedDefects: a good hash with one defect is found, and the place is named.
func TestPlantedDefects(t *testing.T) {
	good := idealHash(9)
	planted := func(name string, sum func(key []byte) uint64) hashSubject {
		return hashSubject{Subject: Subject{name, KindHash}, bits: 64, sum: sum}
	}
	subjects := []hashSubject{
		planted("bit 3 is bit 7", func(key []byte) uint64 {
			h := good(key)
			return h&^8 | h>>7&1<<3
		}),
		planted("bit 3 is mostly bit 7", func(key []byte) uint64 {
			h := good(key)
			if h>>63 == 0 { // both values of a pair on a quarter of the keys
				return h&^8 | h>>7&1<<3
			}
			return h
		}),
		planted("byte 2 is ignored", func(key []byte) uint64 {
			return good(append(append([]byte(nil), key[:2]...), key[3:]...))
		}),
		planted("bit 5 flips on 40%", func(key []byte) uint64 {
			h := good(key)
			if h>>32%100 < 72 { // 2·0.72/2·(1-0.72/2) and so on: less than half
				return h | 1<<5
			}
			return h
		}),
	}
	rows := correctedAvalanche(t, comNames(5000), subjects)
	for i, want := range []struct {
		bit, bic bool // found
		worst    float64
		out      [2]int
	}{
		{false, true, 1, [2]int{3, 7}},
		{false, true, 0, [2]int{3, 7}},
		{true, false, 0, [2]int{}},
		{true, false, 0, [2]int{}},
	} {
		r := rows[i]
		if (r.WorstP < 0.001) != want.bit || (r.BICP < 0.001) != want.bic {
			t.Errorf("%s: worst bit %g, p = %g; BIC %g, p = %g", r.Name, r.WorstBias, r.WorstP, r.BICWorst, r.BICP)
		}
		if want.bic && [2]int{r.BICOut1, r.BICOut2} != want.out || r.BICWorst < want.worst {
			t.Errorf("%s: BIC %g of bits %v", r.Name, r.BICWorst, []int{r.BICOut1, r.BICOut2})
		}
	}
	if r := rows[2]; r.WorstIn/8 != 2 || r.WorstBias != 1 || r.Never != 8.0/(8*avalancheBytes) {
		t.Errorf("%s: worst input bit %d, bias %g, never %g", r.Name, r.WorstIn, r.WorstBias, r.Never)
	}
	if r := rows[3]; r.WorstOut != 5 {
		t.Errorf("%s: worst output bit %d", r.Name, r.WorstOut)
	}
}

// TestBICFalseAlarms: the corrected p-values of random functions are below α in no
// more than about α of the runs.
func TestBICFalseAlarms(t *testing.T) {
	const runs, alpha = 60, 0.1
	keys := newFlipKeys(cutKeys(numbers(400).Keys, 400, stream(1))) // many pairs differ in one bit
	worst, bic := 0, 0
	for seed := range uint64(runs) {
		s := hashSubject{Subject: Subject{"random", KindHash}, bits: 16, sum: idealHash(seed)}
		s.sum = func(key []byte) uint64 { return idealHash(seed)(key) & 0xFFFF }
		r, _ := avalanche(context.Background(), s, keys)
		if r.WorstP < alpha {
			worst++
		}
		if r.BICP < alpha {
			bic++
		}
	}
	// More than 14 of 60 at 10% each has a probability of 0.1%.
	if worst > 14 || bic > 14 {
		t.Errorf("of %d random functions %d have a bad bit and %d a bad pair", runs, worst, bic)
	}
}

// TestIndependence compares with the correlation by its definition.
func TestIndependence(t *testing.T) {
	s := subjectsNamed(t, "AP")[0]
	keys := comNames(300).Keys
	f := newFlipKeys(cutKeys(keys, 300, stream(1)))
	r, _ := avalanche(context.Background(), s, f)
	var xs, ys []float64
	for i, key := range f.keys {
		if f.counted[r.BICIn][i/64]>>(i%64)&1 == 0 {
			continue
		}
		other := append([]byte(nil), key...)
		other[r.BICIn/8] ^= 1 << (r.BICIn % 8)
		d := s.sum(key) ^ s.sum(other)
		xs, ys = append(xs, float64(d>>r.BICOut1&1)), append(ys, float64(d>>r.BICOut2&1))
	}
	mean := func(v []float64) (m float64) {
		for _, x := range v {
			m += x / float64(len(v))
		}
		return m
	}
	mx, my := mean(xs), mean(ys)
	var xy, xx, yy float64
	for i := range xs {
		xy, xx, yy = xy+(xs[i]-mx)*(ys[i]-my), xx+(xs[i]-mx)*(xs[i]-mx), yy+(ys[i]-my)*(ys[i]-my)
	}
	if want := math.Abs(xy) / math.Sqrt(xx*yy); !near(r.BICWorst, want, 1e-9) {
		t.Errorf("correlation %g, want %g", r.BICWorst, want)
	}
}

// TestCoinP compares with the binomial distribution.
func TestCoinP(t *testing.T) {
	for _, c := range []struct {
		count, n int
		want     float64
	}{{0, 1, 1}, {0, 2, 0.5}, {2, 2, 0.5}, {1, 2, 1}, {0, 10, 2.0 / 1024}, {9, 10, 22.0 / 1024}, {5, 10, 1}, {4, 9, 1}} {
		if got := coinP(c.count, c.n); !near(got, c.want, 1e-9) {
			t.Errorf("%d of %d: %g, want %g", c.count, c.n, got, c.want)
		}
	}
}

func TestTranspose(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var words [64]uint64
	for i := range words {
		words[i] = random.Uint64()
	}
	turned := words
	transpose(&turned)
	for i := range 64 {
		for j := range 64 {
			if turned[i]>>j&1 != words[j]>>i&1 {
				t.Fatalf("bit %d of word %d", j, i)
			}
		}
	}
}

// TestPairsCountOnce: of two keys that differ in one bit only one counts for it.
func TestPairsCountOnce(t *testing.T) {
	f := newFlipKeys([][]byte{{0}, {1}, {2}, {5}})
	var got []string
	for in := range 3 {
		got = append(got, fmt.Sprintf("%04b", f.counted[in][0]))
	}
	// Bit 0 has the pair 0 and 1, bit 1 has 0 and 2, bit 2 has 1 and 5.
	if want := "[1101 1011 0111]"; fmt.Sprint(got) != want {
		t.Errorf("counted %v, want %s", got, want)
	}
}
