package segment

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestOrder compares the sorter with a plain sort, over hashes that are spread in
// several ways.
func TestOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	for name, hash := range map[string]func() uint64{
		"even":      r.Uint64,
		"partition": func() uint64 { return 7<<56 | r.Uint64()>>8 },
		"few":       func() uint64 { return r.Uint64() >> 62 },
		"ends":      func() uint64 { return r.Uint64() & 1 * math.MaxUint64 },
		"skewed":    func() uint64 { return r.Uint64() >> r.IntN(64) },
		"one":       func() uint64 { return 5 },
	} {
		for _, n := range []int{0, 1, 2, 3, 10, 1000, 1024} {
			s := &sorter{raw: []byte{}}
			for range n {
				// Lines differ, so there is one order.
				e := Entry{Key: string(rune('a' + r.IntN(26))), Line: len(s.items)}
				pos := len(s.raw)
				s.raw = append(s.raw, make([]byte, 4)...)
				s.raw = appendRecord(s.raw, &e, 0, false)
				s.raw[pos] = byte(len(s.raw) - pos - 4)
				s.items = append(s.items, item{hash(), pos})
			}
			want := slices.Clone(s.items)
			slices.SortFunc(want, s.compare)
			s.order()
			if !slices.Equal(s.items, want) {
				t.Errorf("%s, %d items: out of order", name, n)
			}
		}
	}
}

// BenchmarkOrder compares with a plain sort, over a partition of ten million
// entries.
func BenchmarkOrder(b *testing.B) {
	r := rand.New(rand.NewPCG(25, 26))
	items := make([]item, 10_000_000/partitions)
	for i := range items {
		items[i] = item{3<<56 | r.Uint64()>>8, 0}
	}
	s := &sorter{}
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			s.items = append(s.items[:0], items...)
			slices.SortFunc(s.items, s.compare)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(items)), "ns/entry")
	})
	b.Run("buckets", func(b *testing.B) {
		for b.Loop() {
			s.items = append(s.items[:0], items...)
			s.order()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(items)), "ns/entry")
	})
}
