package bloom

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"spamgate/hashfamily"
	"spamgate/internal/disposable"
)

// manyKeys is as many keys of 33 bytes, as a [Scan] gives them: the hash is a
// number from a generator and the key made from it, so that none is stored.
func manyKeys(n uint64) Scan {
	step := (1<<64 - 1) / n
	return func(first, last uint64, yield func(hash uint64, key []byte) bool) error {
		key := []byte("0123456789abcdef.mail.example.com")
		for i := (first + step - 1) / step; i < n && i*step <= last; i++ {
			for j, x := 0, i*0x9E3779B97F4A7C15; j < 16; j, x = j+1, x>>4 {
				key[j] = "0123456789abcdef"[x&15]
			}
			if !yield(i*step, key) {
				return nil
			}
		}
		return nil
	}
}

const benchKeys = 10_000_000

// BenchmarkFillScan fills a filter with ten million keys.
func BenchmarkFillScan(b *testing.B) {
	tooLarge(b, benchKeys)
	for _, name := range []string{"classic", "double"} {
		for _, shards := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/shards=%d", name, shards), func(b *testing.B) {
				family := benchFamily(b, name)
				for b.Loop() {
					if err := newShards(b, family, shards).Fill(b.Context(), benchKeys, manyKeys(benchKeys)); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchKeys, "ns/key")
			})
		}
	}
}

func benchFamily(b *testing.B, name string) hashfamily.Family {
	spec, err := hashfamily.ParseSpec(name)
	if err != nil {
		b.Fatal(err)
	}
	family, err := spec.New(hashfamily.Params{M: ClassicBits, Key: testHashKey})
	if err != nil {
		b.Fatal(err)
	}
	return family
}

// BenchmarkNewFuse builds a fuse filter of ten million keys.
func BenchmarkNewFuse(b *testing.B) {
	tooLarge(b, benchKeys)
	for _, width := range []int{8, 16, 32} {
		b.Run(fmt.Sprintf("width=%d", width), func(b *testing.B) {
			var f *Fuse
			var err error
			for b.Loop() {
				if f, err = NewFuse(b.Context(), width, benchKeys, manyKeys(benchKeys)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchKeys, "ns/key")
			b.ReportMetric(float64(f.Bytes())*8/benchKeys, "bits/key")
		})
	}
}

// BenchmarkPart writes and unites the part of a list: one that stands beside
// large ones, and a large one.
func BenchmarkPart(b *testing.B) {
	for _, n := range []uint64{100, 100_000, benchKeys} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			tooLarge(b, int(n))
			family := benchFamily(b, "classic")
			var part bytes.Buffer
			b.Run("write", func(b *testing.B) {
				for b.Loop() {
					part.Reset()
					if err := WriteListBits(b.Context(), &part, testBits, family, 1, n, manyKeys(n)); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(part.Len()), "bytes")
			})
			s := newShards(b, family, 1)
			b.Run("unite", func(b *testing.B) {
				for b.Loop() {
					if err := s.Unite(bytes.NewReader(part.Bytes()), testBits); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// BenchmarkMayContainKinds asks filters of ten million keys for absent ones: made-up
// senders' keys, hashed where the filter needs it.
func BenchmarkMayContainKinds(b *testing.B) {
	tooLarge(b, benchKeys)
	absent := absentKeys(b, 50_000)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(absent), func(i, j int) { absent[i], absent[j] = absent[j], absent[i] })
	ask := func(b *testing.B, mayContain func(key []byte) bool) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			mayContain(absent[i])
			if i++; i == len(absent) {
				i = 0
			}
		}
	}
	for _, shards := range []int{1, 2, 6} {
		b.Run(fmt.Sprintf("classic/shards=%d", shards), func(b *testing.B) {
			s := newShards(b, benchFamily(b, "classic"), shards)
			if err := s.Fill(b.Context(), benchKeys, manyKeys(benchKeys)); err != nil {
				b.Fatal(err)
			}
			s.UseHugePages()
			b.ResetTimer()
			ask(b, func(key []byte) bool {
				if shards == 1 {
					return s.MayContain(0, key)
				}
				return s.MayContain(hashOf(key), key)
			})
		})
	}
	for _, width := range []int{8, 16, 32} {
		b.Run(fmt.Sprintf("fuse/width=%d", width), func(b *testing.B) {
			f, err := NewFuse(b.Context(), width, benchKeys, manyKeys(benchKeys))
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			ask(b, func(key []byte) bool { return f.MayContain(hashOf(key)) })
		})
	}
}

// BenchmarkWritePartOfList is the part of the real list.
func BenchmarkWritePartOfList(b *testing.B) {
	var keys []hashed
	for _, key := range disposable.Domains() {
		keys = append(keys, hashed{hashOf(key), slices.Clone(key)})
	}
	sortKeys(keys)
	family := benchFamily(b, "classic")
	for b.Loop() {
		if err := WriteListBits(b.Context(), io.Discard, testBits, family, 1, uint64(len(keys)), scanOf(keys)); err != nil {
			b.Fatal(err)
		}
	}
}
