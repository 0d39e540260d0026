package bloom

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"spamgate/hashfamily"
	"spamgate/internal/disposable"
)

// filled returns a classic filter with n entries, and some of them: made-up
// addresses where n is not the list's length.
func filled(b *testing.B, n int) (*Filter, [][]byte) {
	b.Helper()
	if n == len(disposable.Domains()) {
		return listFilter(b, ClassicBits), disposable.Domains()
	}
	f := newClassic(b, ClassicBits)
	g := newNames(b, 1)
	var present [][]byte
	var key []byte
	for i := range n {
		key = g.appendAddress(key[:0], uint64(i))
		f.Add(key)
		if len(present) < 1<<17 {
			present = append(present, slices.Clone(key))
		}
	}
	return f, present
}

// sizes are the numbers of entries that the benchmarks try. The large ones take
// seconds to fill and are left out with -short.
var sizes = []int{0, 121_570, 10_000_000}

func tooLarge(b *testing.B, n int) {
	b.Helper()
	if n > 1_000_000 && testing.Short() {
		b.Skip("filling takes seconds; -short")
	}
}

// BenchmarkMayContain looks up in the classic filter, by stages and, as "plain",
// one hash after the other in the order of probeRank.
func BenchmarkMayContain(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			tooLarge(b, n)
			f, present := filled(b, n)
			plain := *f
			plain.staged = false
			absent := absentKeys(b, 50_000)
			b.Run("absent", func(b *testing.B) { lookUp(b, f, absent) })
			b.Run("absent/plain", func(b *testing.B) { lookUp(b, &plain, absent) })
			if n > 0 {
				b.Run("present", func(b *testing.B) { lookUp(b, f, present) })
				b.Run("present/plain", func(b *testing.B) { lookUp(b, &plain, present) })
			}
		})
	}
}

// lookUp asks for one key after the other.
func lookUp(b *testing.B, f *Filter, keys [][]byte) {
	b.Helper()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		f.MayContain(keys[i])
		if i++; i == len(keys) {
			i = 0
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	f := newClassic(b, ClassicBits)
	keys := disposable.Domains()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		f.Add(keys[i])
		if i++; i == len(keys) {
			i = 0
		}
	}
}

// BenchmarkProbe measures what probeRank weighs, for each hash: the time to
// compute an index, without the memory access that is the same for all, and the
// part of absent keys that pass, at two fill ratios.
func BenchmarkProbe(b *testing.B) {
	keys := absentKeys(b, 50_000)
	for _, n := range sizes[1:] {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			tooLarge(b, n)
			f, _ := filled(b, n)
			for i, h := range hashfamily.Hashes() {
				b.Run(h.Name, func(b *testing.B) {
					next := 0
					for b.Loop() {
						f.classic.Index(i, keys[next])
						if next++; next == len(keys) {
							next = 0
						}
					}
					b.ReportMetric(float64(passes(f, i, keys))/float64(len(keys)), "pass/op")
				})
			}
		})
	}
}

// BenchmarkProbeOrder compares the order of probeRank with the family's own
// order, and with the reverse of probeRank.
func BenchmarkProbeOrder(b *testing.B) {
	keys := absentKeys(b, 50_000)
	for _, n := range sizes[1:] {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			tooLarge(b, n)
			f, _ := filled(b, n)
			reverse := slices.Clone(f.probes)
			slices.Reverse(reverse)
			for _, order := range []struct {
				name   string
				probes []int
			}{
				{"ranked", f.probes},
				{"family", []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
				{"reverse", reverse},
			} {
				b.Run(order.name, func(b *testing.B) {
					other := *f
					other.probes, other.staged = order.probes, false
					lookUp(b, &other, keys)
				})
			}
		})
	}
}

// BenchmarkFalsePositives measures the false positive rate of made-up addresses
// beside what the formulas say. At these sizes false positives are rare: give it
// -benchtime=20000000x.
func BenchmarkFalsePositives(b *testing.B) {
	for _, n := range []int{10_000_000, int(Capacity(ClassicBits, 11))} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			tooLarge(b, n)
			f, _ := filled(b, n)
			b.Run("lookup", func(b *testing.B) {
				g := newNames(b, 3)
				var key []byte
				wrong := 0
				for i := range b.N {
					key = g.appendAddress(key[:0], 1<<40+uint64(i))
					if f.MayContain(key) {
						wrong++
					}
				}
				b.ReportMetric(float64(wrong)/float64(b.N), "fpr")
				b.ReportMetric(FPR(f.M(), f.K(), float64(n)), "fpr-by-formula")
				b.ReportMetric(f.FPR(), "fpr-by-fill")
				b.ReportMetric(math.Pow(f.FillRatio(), 9), "fill^9")
				b.ReportMetric(f.FillRatio(), "fill")
				b.ReportMetric(f.EstimatedEntries(), "estimate")
			})
		})
	}
}

// BenchmarkMayContainSized looks absent keys up in a half full filter of the size that
// a million keys have at a rate of 1e-6, over the families of [filter] kind sized.
func BenchmarkMayContainSized(b *testing.B) {
	absent := absentKeys(b, 50_000)
	for _, name := range []string{"double", "double:murmur3", "seeded"} {
		for _, m := range []uint64{28_755_176, 1 << 25} {
			b.Run(fmt.Sprintf("%s/m=%d", strings.ReplaceAll(name, ":", "-"), m), func(b *testing.B) {
				spec, err := hashfamily.ParseSpec(name)
				if err != nil {
					b.Fatal(err)
				}
				family, err := spec.New(hashfamily.Params{M: m, K: 15, Key: make([]byte, hashfamily.KeySize)})
				if err != nil {
					b.Fatal(err)
				}
				f, err := New(family)
				if err != nil {
					b.Fatal(err)
				}
				g := newNames(b, 1)
				var key []byte
				for i := 0; f.FillRatio() < 0.5; i++ {
					key = g.appendAddress(key[:0], uint64(i))
					f.Add(key)
				}
				lookUp(b, f, absent)
			})
		}
	}
}
