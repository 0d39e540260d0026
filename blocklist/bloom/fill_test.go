package bloom

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"spamgate/hashfamily"
	"spamgate/internal/disposable"
)

// TestAddAll fills filters of every family in lumps of any size, and key by key.
func TestAddAll(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, m := range []uint64{1, 1000, 1 << 14} {
		for _, family := range allFamilies(t, m) {
			together, err := New(family)
			if err != nil {
				t.Fatal(err)
			}
			single, err := New(family)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{0, 1, fillBatch - 1, fillBatch, fillBatch + 1, 3*fillBatch + 5} {
				keys := make([][]byte, n)
				for i := range keys {
					keys[i] = randomKey(r)
					single.Add(keys[i])
				}
				together.AddAll(keys)
				if !bytes.Equal(together.bits, single.bits) || together.setBits != single.setBits {
					t.Fatalf("%s, m=%d: AddAll of %d keys sets other bits than Add", family.Name(), m, n)
				}
			}
		}
	}
}

// inBatches is a family that hashes batches, and counts them.
type inBatches struct {
	strided
	batches *int
}

func (b inBatches) AppendIndicesBatch(dst []uint64, keys [][]byte) []uint64 {
	*b.batches++
	for _, key := range keys {
		dst = b.AppendIndices(dst, key)
	}
	return dst
}

func TestAddAllGivesBatches(t *testing.T) {
	keys := disposable.Domains()[:2*fillBatch+1]
	batches := 0
	f, err := New(inBatches{strided{k: 4, m: 1 << 14}, &batches})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := New(strided{k: 4, m: 1 << 14})
	if err != nil {
		t.Fatal(err)
	}
	f.AddAll(keys)
	plain.AddAll(keys)
	if batches != 3 || !bytes.Equal(f.bits, plain.bits) {
		t.Errorf("%d batches, want 3; same bits: %v", batches, bytes.Equal(f.bits, plain.bits))
	}
}

// BenchmarkFill fills a filter with 10 million made-up addresses (one million with
// -short), a thousand at a time, and tells the time for a key.
func BenchmarkFill(b *testing.B) {
	n := 10_000_000
	if testing.Short() {
		n = 1_000_000
	}
	g := newNames(b, 1)
	var text []byte
	ends := make([]int, n)
	for i := range ends {
		text = g.appendAddress(text, uint64(i))
		ends[i] = len(text)
	}
	keys := make([][]byte, n)
	start := 0
	for i, end := range ends {
		keys[i], start = text[start:end], end
	}
	family, err := hashfamily.NewSeeded(ClassicBits, 10, 0)
	if err != nil {
		b.Fatal(err)
	}
	seeded, err := New(family)
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range []*Filter{newClassic(b, ClassicBits), seeded} {
		for _, way := range []struct {
			name string
			add  func(keys [][]byte)
		}{
			{"Add", func(keys [][]byte) {
				for _, key := range keys {
					f.Add(key)
				}
			}},
			{"AddAll", f.AddAll},
		} {
			b.Run(f.Family().Name()+"/"+way.name, func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					clear(f.bits)
					f.setBits = 0
					b.StartTimer()
					for pos := 0; pos < n; pos += 1000 {
						way.add(keys[pos : pos+1000])
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
			})
		}
	}
}
