package hashlab

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	"github.com/zeebo/xxh3"

	"spamgate/internal/disposable"
)

// By hand: 25 are expected; (15² + 5² + 5² + 15²)/25.
func TestChiSquare(t *testing.T) {
	if got := chiSquare([]uint32{10, 20, 30, 40}, 100); got != 20 {
		t.Errorf("%g, want 20", got)
	}
	if got := chiSquare([]uint32{7, 7, 7}, 21); got != 0 {
		t.Errorf("of equal counts: %g", got)
	}
	u := Uniformity{Keys: 100}.test("low", []uint32{10, 20, 30, 40})
	if !near(u.Effect, math.Sqrt(0.2), 1e-12) || !near(u.ExcessEffect, math.Sqrt(0.17), 1e-12) || u.DF != 3 || u.Buckets != 4 {
		t.Errorf("%+v", u)
	}
}

func TestUniformityBuckets(t *testing.T) {
	for _, tt := range []struct{ keys, buckets int }{
		{10, 2}, {19, 2}, {20, 4}, {39, 4}, {40, 8}, {1000, 128}, {400_000, 1 << 16},
	} {
		rows := measureUniformity(context.Background(), numbers(tt.keys), subjectsNamed(t, "xxh3", "PJW"))
		if len(rows) != 4 {
			t.Fatalf("%d keys: %d rows", tt.keys, len(rows))
		}
		for _, r := range rows {
			if r.Buckets != tt.buckets || r.DF != tt.buckets-1 || r.Keys != tt.keys || r.Corpus != "numbers" {
				t.Errorf("%d keys: %+v", tt.keys, r)
			}
		}
	}
	if rows := measureUniformity(context.Background(), numbers(9), subjectsNamed(t, "xxh3")); rows != nil {
		t.Errorf("9 keys: %+v", rows)
	}
}

func TestUniformityOfControls(t *testing.T) {
	var rows []Uniformity
	for _, c := range []*Corpus{numbers(100_000), comNames(100_000)} {
		rows = append(rows, measureUniformity(context.Background(), c, subjectsNamed(t, "ideal", "xxh3", "HighwayHash", "Murmur3"))...)
	}
	correctUniformity(rows)
	for _, r := range rows {
		if r.PHolm < 0.05 || r.PEven < 0.05 || r.ExcessEffect > 0.1 {
			t.Errorf("%s, %s, %s: %+v", r.Corpus, r.Name, r.Part, r)
		}
	}
}

// Over many seeds the χ² of both controls stray about their degrees of freedom as
// far as χ² does, no more and no less: in units of its standard deviation the
// mean is 0 and the mean square 1. One seed alone may well look bad.
func TestUniformityIsCalibrated(t *testing.T) {
	const seeds = 50
	for name, seeded := range map[string]func(seed uint64) func([]byte) uint64{
		Ideal: idealHash,
		XXH3: func(seed uint64) func([]byte) uint64 {
			return func(key []byte) uint64 { return xxh3.HashSeed(key, seed) }
		},
	} {
		var subjects []hashSubject
		for seed := range uint64(seeds) {
			subjects = append(subjects, hashSubject{bits: 64, sum: seeded(seed)})
		}
		sum, squares := map[string]float64{}, map[string]float64{}
		for _, r := range measureUniformity(context.Background(), &Corpus{Keys: disposable.Domains()}, subjects) {
			df := float64(r.DF)
			sum[r.Part] += (r.ChiSquare - df) / math.Sqrt(2*df)
			squares[r.Part] += (r.ChiSquare - df) * (r.ChiSquare - df) / (2 * df)
		}
		for _, part := range []string{"low", "high"} {
			t.Logf("%s, %s bits: mean %.2f, mean square %.2f", name, part, sum[part]/seeds, squares[part]/seeds)
			if math.Abs(sum[part]) > 4*math.Sqrt(seeds) || chiSquareP(squares[part], seeds) < 1e-4 || chiSquareBelow(squares[part], seeds) < 1e-4 {
				t.Errorf("%s, %s bits: mean %.2f, mean square %.2f", name, part, sum[part]/seeds, squares[part]/seeds)
			}
		}
	}
}

// Bits that are not there, and bits too even to be chance.
func TestUniformityOfBadHashes(t *testing.T) {
	ctx := context.Background()
	counter := uint64(0) // counts the keys, so that each value comes once
	for _, tt := range []struct {
		name         string
		sum          func(key []byte) uint64
		uneven, even [2]bool // of the low bits, of the high ones
	}{
		{"constant", func([]byte) uint64 { return 12345 }, [2]bool{true, true}, [2]bool{}},
		{"no low bit", func(key []byte) uint64 { return highway(key) >> 32 &^ 1 }, [2]bool{true, false}, [2]bool{}},
		{"no high bit", func(key []byte) uint64 { return highway(key) >> 33 }, [2]bool{false, true}, [2]bool{}},
		{"counter", func([]byte) uint64 { counter++; return (counter<<16 | counter&0xFFFF) & (1<<32 - 1) }, [2]bool{}, [2]bool{true, true}},
	} {
		counter = 0
		rows := measureUniformity(ctx, numbers(1<<16), badHash(tt.sum))
		correctUniformity(rows)
		for i, r := range rows {
			if uneven, even := r.PHolm < 1e-6, r.PEven < 1e-6; uneven != tt.uneven[i] || even != tt.even[i] {
				t.Errorf("%s, %s bits: uneven %v, even %v: %+v", tt.name, r.Part, uneven, even, r)
			}
		}
	}
}

// What some classics do to numbers in a row: the shifting ones leave most buckets
// empty, and BKDR's low bits are more even than chance is.
func TestUniformityOfClassics(t *testing.T) {
	rows := measureUniformity(context.Background(), numbers(100_000), hashSubjects(1))
	correctUniformity(rows)
	low := func(name string) Uniformity {
		return row(t, rows, func(r Uniformity) bool { return r.Name == name && r.Part == "low" })
	}
	for _, name := range []string{"BP", "DEK", "PJW", "ELF"} {
		if r := low(name); r.PHolm > 1e-9 || r.ExcessEffect < 0.5 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := low("BKDR"); r.PEven > 1e-9 || r.ExcessEffect != 0 {
		t.Errorf("%+v", r)
	}
}

// The corrected p-values depend on all tests, and are never below their own.
func TestCorrectUniformity(t *testing.T) {
	rows := measureUniformity(context.Background(), numbers(1000), hashSubjects(1))
	var raw []float64
	for _, r := range rows {
		if r.PHolm != 0 || r.PEven != 0 {
			t.Fatalf("corrected before all was known: %+v", r)
		}
		raw = append(raw, r.P)
	}
	correctUniformity(rows)
	for i, p := range holm(raw) {
		if rows[i].PHolm != p || p < rows[i].P {
			t.Errorf("%+v, want %g", rows[i], p)
		}
	}
}

// FuzzUniformity checks that no counts make a number that JSON can't hold, and
// that the two tails are together one.
func FuzzUniformity(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 0, 0, 0, 1, 0, 0, 0})
	f.Add([]byte{255, 255, 255, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		counts := []uint32{1, 1}
		for ; len(data) >= 4; data = data[4:] {
			counts = append(counts, binary.LittleEndian.Uint32(data)%(1<<24))
		}
		keys := 0
		for _, n := range counts {
			keys += int(n)
		}
		rows := []Uniformity{Uniformity{Keys: keys}.test("low", counts)}
		correctUniformity(rows)
		r := rows[0]
		for _, v := range []float64{r.P, r.PHolm, r.PEven} {
			if !(v >= 0 && v <= 1) {
				t.Errorf("%v: %+v", counts, r)
			}
		}
		if math.Abs(r.P+r.PEven-1) > 1e-9 || math.IsNaN(r.Effect+r.ExcessEffect) || math.IsInf(r.Effect, 0) {
			t.Errorf("%v: %+v", counts, r)
		}
	})
}
