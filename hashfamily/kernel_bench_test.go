package hashfamily

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"spamgate/internal/disposable"
)

// list is keys to measure with.
type list struct {
	name string
	keys [][]byte
}

// equalLists is random keys, all of one length in each list.
func equalLists() []list {
	r := rand.New(rand.NewPCG(17, 18))
	var lists []list
	for _, n := range []int{8, 16, 33, 64, 300} {
		var keys [][]byte
		for range 1024 {
			keys = append(keys, randomKey(r, n))
		}
		lists = append(lists, list{fmt.Sprintf("length=%d", n), keys})
	}
	return lists
}

// realLists is the shipped list of domains, and addresses made of it: the first
// label of one domain at another.
func realLists() []list {
	domains := disposable.Domains()
	var addresses [][]byte
	for i, domain := range domains {
		local, _, _ := bytes.Cut(domain, []byte("."))
		addresses = append(addresses, slices.Concat(local, []byte("@"), domains[i*31%len(domains)]))
	}
	return []list{{"domains", domains}, {"addresses", addresses}}
}

// way is a way to hash a few hundred keys.
type way struct {
	name string
	sum  func(dst [][11]uint32, keys [][]byte)
}

func ways() []way {
	list := []way{{"fused", sumEach}}
	for _, p := range paths()[1:] {
		list = append(list, way{p.String(), func(dst [][11]uint32, keys [][]byte) { sumBatch(p, dst, keys) }})
	}
	return list
}

// interleaved is only for keys of one length, and a multiple of four.
func interleaved(dst [][11]uint32, keys [][]byte) {
	for i := 0; i < len(keys); i += 4 {
		sumInterleaved((*[4][11]uint32)(dst[i:]), keys[i], keys[i+1], keys[i+2], keys[i+3])
	}
}

// BenchmarkEleven measures all eleven hashes of a key, in each way beside the
// plain loops: x-plain is how many times as fast it is. Both take turns every few
// hundred keys, so that they have the same machine; each figure is the median over
// these turns. Give it time for some thousand of them.
func BenchmarkEleven(b *testing.B) {
	for _, list := range slices.Concat(equalLists(), realLists()) {
		some := ways()
		if list.name != "domains" && list.name != "addresses" {
			some = append(some, way{"interleaved", interleaved})
		}
		for _, way := range some {
			b.Run(list.name+"/"+way.name, func(b *testing.B) { besidePlain(b, list.keys, way.sum) })
		}
	}
}

func besidePlain(b *testing.B, keys [][]byte, sum func(dst [][11]uint32, keys [][]byte)) {
	plain := func(dst [][11]uint32, keys [][]byte) {
		for i, key := range keys {
			dst[i] = plainSums(key)
		}
	}
	var dst [256][11]uint32
	took := func(sum func(dst [][11]uint32, keys [][]byte), keys [][]byte) float64 {
		start := time.Now()
		sum(dst[:], keys)
		return float64(time.Since(start).Nanoseconds()) / float64(len(keys))
	}
	var times, ratios []float64
	for pos := 0; b.Loop(); {
		some := keys[pos : pos+len(dst)]
		var fast, slow float64
		if len(times)%2 == 0 { // who comes second finds the keys in the cache
			fast, slow = took(sum, some), took(plain, some)
		} else {
			slow, fast = took(plain, some), took(sum, some)
		}
		times, ratios = append(times, fast), append(ratios, slow/fast)
		if pos += len(dst); pos+len(dst) > len(keys) {
			pos = 0
		}
	}
	b.ReportMetric(0, "ns/op") // of both together: says nothing
	b.ReportMetric(median(times), "ns/key")
	b.ReportMetric(median(ratios), "x-plain")
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// BenchmarkFrom measures what fusedFrom, batchHashes, batchFrom and few weigh: the
// indices of a key from some hashes, in three ways; and the hashes and indices of
// a few keys at once, in a row and side by side.
func BenchmarkFrom(b *testing.B) {
	keys := disposable.Domains()
	for _, k := range []int{1, 2, 3, 4, 5, 6} {
		for _, names := range [][]string{classicNames()[:k], classicNames()[11-k:]} {
			c, err := NewClassic(1<<28, names...)
			if err != nil {
				b.Fatal(err)
			}
			room := make([]uint64, batchSize*k)
			for _, way := range []struct {
				name string
				each func(keys [][]byte)
			}{
				{"separate", func(keys [][]byte) {
					for _, key := range keys {
						for i := range k {
							room[i] = c.Index(i, key)
						}
					}
				}},
				{"fused", func(keys [][]byte) {
					for _, key := range keys {
						all := Sum11(key)
						c.putIndices(room[:k], &all)
					}
				}},
				{"batch", func(keys [][]byte) { c.appendChunk(room[:0], keys) }},
			} {
				b.Run(fmt.Sprintf("hashes=%d/%s…/%s", k, names[0], way.name), func(b *testing.B) {
					eachKey(b, keys, batchSize, way.each)
				})
			}
		}
	}
	c, err := NewClassic(1 << 28)
	if err != nil {
		b.Fatal(err)
	}
	room := make([]uint64, 0, 16*c.K())
	for _, n := range []int{1, 2, 3, 4, 6, 8, 12, 16} {
		var dst [16][11]uint32
		some := append(ways(),
			way{"AppendIndices", func(_ [][11]uint32, keys [][]byte) {
				for _, key := range keys {
					c.AppendIndices(room, key)
				}
			}},
			way{"appendChunk", func(_ [][11]uint32, keys [][]byte) { c.appendChunk(room, keys) }})
		for _, way := range some {
			b.Run(fmt.Sprintf("keys=%d/%s", n, way.name), func(b *testing.B) {
				eachKey(b, keys, n, func(keys [][]byte) { way.sum(dst[:], keys) })
			})
		}
	}
}

// eachKey calls f with n keys at a time, and reports the time for each.
func eachKey(b *testing.B, keys [][]byte, n int, f func(keys [][]byte)) {
	pos := 0
	for b.Loop() {
		f(keys[pos : pos+n])
		if pos += n; pos+n > len(keys) {
			pos = 0
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
}
