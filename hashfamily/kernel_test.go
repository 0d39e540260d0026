package hashfamily

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"spamgate/internal/disposable"
)

// plainSums is Sum11 by the plain loops.
func plainSums(key []byte) [11]uint32 {
	return [11]uint32{
		RS(key), JS(key), PJW(key), ELF(key), BKDR(key), SDBM(key), DJB(key), DEK(key), BP(key), FNV(key), AP(key),
	}
}

// String is the way's name in tests and benchmarks.
func (p path) String() string { return [...]string{"portable", "avx2", "avx512"}[p] }

// eachPath runs a test for every way that this processor has.
func eachPath(t *testing.T, f func(t *testing.T, p path)) {
	t.Helper()
	for _, p := range paths() {
		t.Run(p.String(), func(t *testing.T) { f(t, p) })
	}
}

// checkBatch compares a way with the plain loops. Nothing may be stored behind
// the keys' rows.
func checkBatch(t *testing.T, p path, keys [][]byte) {
	t.Helper()
	behind := [11]uint32{1, 2, 3}
	dst := slices.Repeat([][11]uint32{behind}, len(keys)+2)
	sumBatch(p, dst[:len(keys)], keys)
	for i, key := range keys {
		if want := plainSums(key); dst[i] != want {
			t.Fatalf("%d keys, the %d., %d bytes %q:\n%v, want\n%v", len(keys), i, len(key), key, dst[i], want)
		}
	}
	if dst[len(keys)] != behind || dst[len(keys)+1] != behind {
		t.Fatalf("%d keys: rows behind are changed", len(keys))
	}
}

// randomKey is n bytes of any value.
func randomKey(r *rand.Rand, n int) []byte {
	key := make([]byte, n)
	for i := range key {
		key[i] = byte(r.Uint32())
	}
	return key
}

// randomKeys is keys of up to most bytes.
func randomKeys(r *rand.Rand, n, most int) [][]byte {
	var keys [][]byte
	for range n {
		keys = append(keys, randomKey(r, r.IntN(most+1)))
	}
	return keys
}

func TestSum11(t *testing.T) {
	for _, v := range loadVectors(t) {
		if got := Sum11(v.key); !slices.Equal(got[:], v.sums) {
			t.Errorf("Sum11(%q) = %v, want %v", v.key, got, v.sums)
		}
	}
	r := rand.New(rand.NewPCG(5, 6))
	for n := range 301 {
		for _, key := range [][]byte{randomKey(r, n), randomKey(r, n), bytes.Repeat([]byte{0xFF}, n), make([]byte, n)} {
			if got, want := Sum11(key), plainSums(key); got != want {
				t.Errorf("%d bytes %q: %v, want %v", n, key, got, want)
			}
		}
	}
	if Sum11(nil) != plainSums(nil) {
		t.Error("Sum11(nil) is not that of the empty key")
	}
}

func TestSumBatchAtEveryLength(t *testing.T) {
	eachPath(t, func(t *testing.T, p path) {
		r := rand.New(rand.NewPCG(7, 8))
		var mixed [][]byte
		for n := range 301 {
			var same [][]byte
			for range 17 {
				same = append(same, randomKey(r, n))
			}
			checkBatch(t, p, same)
			checkBatch(t, p, [][]byte{same[0], nil, same[1], {}, same[2], same[3]})
			mixed = append(mixed, same[0], bytes.Repeat([]byte{0xFF}, n))
		}
		r.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		checkBatch(t, p, mixed)
	})
}

func TestSumBatchOfEverySize(t *testing.T) {
	eachPath(t, func(t *testing.T, p path) {
		r := rand.New(rand.NewPCG(9, 10))
		for n := range 41 {
			for _, most := range []int{0, 3, 17, 60, 300} {
				checkBatch(t, p, randomKeys(r, n, most))
			}
		}
		for _, n := range []int{255, 256, 257, 511, 512, 513, 1000} {
			checkBatch(t, p, randomKeys(r, n, 60))
		}
	})
}

// TestSumBatchOfLongKeys has keys about the length above which each is hashed
// alone, some among short ones and some without.
func TestSumBatchOfLongKeys(t *testing.T) {
	eachPath(t, func(t *testing.T, p path) {
		r := rand.New(rand.NewPCG(11, 12))
		var long [][]byte
		for _, n := range []int{1024, 1025, 1023, 5000, 1 << 16} {
			long = append(long, randomKey(r, n))
		}
		checkBatch(t, p, long)
		checkBatch(t, p, long[3:])
		checkBatch(t, p, append(randomKeys(r, 30, 60), long...))
		checkBatch(t, p, append(long, randomKeys(r, 600, 60)...))
	})
}

func TestSumBatchOfTheList(t *testing.T) {
	eachPath(t, func(t *testing.T, p path) { checkBatch(t, p, disposable.Domains()) })
}

func TestSumBatchRefusesShortDst(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	SumBatch(make([][11]uint32, 2), make([][]byte, 3))
}

// TestSumBatchWhileStacksMove hashes keys that lie on stacks, which grow and are
// scanned meanwhile.
func TestSumBatchWhileStacksMove(t *testing.T) {
	var wg sync.WaitGroup
	for seed := range uint64(4) {
		wg.Go(func() { hashOnStack(t, seed, 60) })
	}
	for range 20 {
		runtime.GC()
	}
	wg.Wait()
}

func hashOnStack(t *testing.T, seed uint64, depth int) {
	var text [40 * 20]byte
	for i := range text {
		text[i] = byte(uint64(i*depth) + seed)
	}
	var keys [40][]byte
	for i := range keys {
		keys[i] = text[i*20 : i*20+i%21]
	}
	var dst [40][11]uint32
	SumBatch(dst[:], keys[:])
	if depth > 0 {
		hashOnStack(t, seed, depth-1)
	}
	for i, key := range keys {
		if dst[i] != plainSums(key) {
			t.Errorf("depth %d: key %d: wrong hashes", depth, i)
		}
	}
}

func TestAppendIndicesBatch(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for _, names := range [][]string{
		nil,
		{"AP"},
		{"BP", "RS"},
		{"AP", "RS", "FNV", "ELF", "PJW"},
		{"RS", "JS", "PJW", "BKDR", "SDBM", "DJB", "DEK", "FNV", "AP"},
		{"AP", "FNV", "BP", "DEK", "DJB", "SDBM", "BKDR", "ELF", "PJW", "JS", "RS"},
	} {
		for _, m := range sizes {
			family, err := NewClassic(m, names...)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{0, 1, 2, 3, 4, 5, 16, 40, 257, 600} {
				keys := randomKeys(r, n, 60)
				want := []uint64{7}
				for _, key := range keys {
					for i := range family.K() {
						want = append(want, family.Index(i, key))
					}
				}
				if got := family.AppendIndicesBatch([]uint64{7}, keys); !slices.Equal(got, want) {
					t.Fatalf("%s, m=%d, %d keys: other indices than by Index", family.Name(), m, n)
				}
			}
		}
	}
}

func TestBatchDoesNotAllocate(t *testing.T) {
	family, err := NewClassic(1 << 28)
	if err != nil {
		t.Fatal(err)
	}
	room := make([]uint64, 0, 20*family.K())
	eachPath(t, func(t *testing.T, p path) {
		allocs := testing.AllocsPerRun(100, func() {
			var text [100]byte
			var keys [20][]byte
			for i := range keys {
				keys[i] = text[5*i : 5*i+i%6]
			}
			var dst [20][11]uint32
			sumBatch(p, dst[:], keys[:])
			SumBatch(dst[:], keys[:])
			dst[0] = Sum11(text[:])
			family.AppendIndicesBatch(room, keys[:])
		})
		if allocs != 0 {
			t.Errorf("%v allocations, want 0", allocs)
		}
	})
}

// FuzzSumBatch compares every way, and Sum11, with the plain loops. The text is
// cut into keys: each is as long as one of the lengths says.
func FuzzSumBatch(f *testing.F) {
	f.Add([]byte(""), []byte{})
	f.Add([]byte("spam@example.com"), []byte{4, 0, 12})
	f.Add([]byte("m\xc3\xbcller@b\xc3\xbccher.example\xff\xfe\x80\x00"), []byte{1, 2, 3, 4, 5, 6, 7})
	f.Add(bytes.Repeat([]byte("\xffoffers.example"), 80), []byte{8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 7, 9, 14, 48, 1, 255, 33, 33})
	f.Fuzz(func(t *testing.T, text, lengths []byte) {
		var keys [][]byte
		for _, n := range lengths {
			key := text[:min(int(n), len(text))]
			keys, text = append(keys, key), text[len(key):]
		}
		keys = append(keys, text)
		for _, key := range keys {
			if got, want := Sum11(key), plainSums(key); got != want {
				t.Fatalf("Sum11(%q) = %v, want %v", key, got, want)
			}
		}
		for _, p := range paths() {
			checkBatch(t, p, keys)
		}
	})
}
