package hashfamily

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// vector is a row of testdata/hashes.tsv: a key and its eleven hashes.
type vector struct {
	key  []byte
	sums []uint32
}

// loadVectors reads testdata/hashes.tsv: a header, then a row a key. In the key
// \xHH stands for that byte. A C implementation of the published definitions
// made the values.
func loadVectors(tb testing.TB) []vector {
	tb.Helper()
	file, err := os.Open("testdata/hashes.tsv")
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	s := bufio.NewScanner(file)
	header := "key"
	for _, h := range Hashes() {
		header += "\t" + h.Name
	}
	if !s.Scan() || s.Text() != header {
		tb.Fatalf("header %q, want %q", s.Text(), header)
	}
	var vectors []vector
	for s.Scan() {
		fields := strings.Split(s.Text(), "\t")
		v := vector{key: unescape(tb, fields[0])}
		for _, field := range fields[1:] {
			sum, err := strconv.ParseUint(field, 10, 32)
			if err != nil {
				tb.Fatal(err)
			}
			v.sums = append(v.sums, uint32(sum))
		}
		vectors = append(vectors, v)
	}
	if err := s.Err(); err != nil {
		tb.Fatal(err)
	}
	return vectors
}

// unescape turns each \xHH into its byte.
func unescape(tb testing.TB, s string) []byte {
	tb.Helper()
	parts := strings.Split(s, `\x`)
	key := []byte(parts[0])
	for _, part := range parts[1:] {
		b, err := hex.DecodeString(part[:2])
		if err != nil {
			tb.Fatalf("%q: %v", s, err)
		}
		key = append(append(key, b...), part[2:]...)
	}
	return key
}

func TestVectors(t *testing.T) {
	vectors := loadVectors(t)
	if len(vectors) < 30 {
		t.Fatalf("only %d vectors", len(vectors))
	}
	for _, v := range vectors {
		for i, h := range Hashes() {
			if got := h.Sum(v.key); got != v.sums[i] {
				t.Errorf("%s(%q) = %d, want %d", h.Name, v.key, got, v.sums[i])
			}
		}
	}
}

func TestNilIsTheEmptyKey(t *testing.T) {
	for _, h := range Hashes() {
		if got, want := h.Sum(nil), h.Sum([]byte{}); got != want {
			t.Errorf("%s(nil) = %d, of the empty key %d", h.Name, got, want)
		}
	}
}

// eachRandomKey calls f with keys of 0 to 63 bytes of any value.
func eachRandomKey(f func(key []byte)) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		key := make([]byte, r.IntN(64))
		for i := range key {
			key[i] = byte(r.Uint32())
		}
		f(key)
	}
}

// TestPJWIsELFStepByStep proves that the two are one function. Both start from
// 0 and keep the hash below 2^28, so it is enough that from any such hash both
// take the same step for any byte. Seven bytes below 16 lead to any hash of seven
// hexadecimal digits. A step sees the first digit (it is folded in), the last
// two (the byte is added to them, and the fold lands there) and carries; these
// are all tried, with random digits between.
func TestPJWIsELFStepByStep(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 16 * 256 * 256 {
		first, last, c := n>>16, n>>8&0xFF, n&0xFF
		key := []byte{byte(first), 0, 0, 0, 0, byte(last >> 4), byte(last & 15), byte(c)}
		for i := 1; i < 5; i++ {
			key[i] = byte(r.UintN(16))
		}
		if p, e := PJW(key), ELF(key); p != e || p >= 1<<28 {
			t.Fatalf("%x: PJW %#x, ELF %#x; want the same, below 2^28", key, p, e)
		}
	}
}

func TestPJWIsELF(t *testing.T) {
	eachRandomKey(func(key []byte) {
		if p, e := PJW(key), ELF(key); p != e || p >= 1<<28 {
			t.Fatalf("%q: PJW %d, ELF %d; want the same, below 2^28", key, p, e)
		}
	})
}

func TestBPDependsOnTheTail(t *testing.T) {
	const low28 = 1<<28 - 1
	eachRandomKey(func(key []byte) {
		if tail := key[max(0, len(key)-4):]; BP(key)&low28 != BP(tail)&low28 {
			t.Fatalf("%q: BP mod 2^28 is %d, of the last four bytes %d", key, BP(key)&low28, BP(tail)&low28)
		}
		if tail := key[max(0, len(key)-5):]; BP(key) != BP(tail) {
			t.Fatalf("%q: BP is %d, of the last five bytes %d", key, BP(key), BP(tail))
		}
	})
	if a, b := BP([]byte("example.com"))&low28, BP([]byte("other.com"))&low28; a != b {
		t.Errorf("BP mod 2^28 of two names under .com: %d and %d", a, b)
	}
}

// TestLowestBitIsParity holds that five of the hashes share their lowest bit.
func TestLowestBitIsParity(t *testing.T) {
	eachRandomKey(func(key []byte) {
		parity := uint32(0)
		for _, c := range key {
			parity ^= uint32(c) & 1
		}
		for i, h := range []uint32{RS(key), BKDR(key), SDBM(key), FNV(key), DJB(key) ^ 1} {
			if h&1 != parity {
				t.Fatalf("%q: hash %d of RS, BKDR, SDBM, FNV, DJB does not end in the parity %d", key, i, parity)
			}
		}
	})
}

func TestZeroBytesInFront(t *testing.T) {
	eachRandomKey(func(key []byte) {
		longer := append([]byte{0, 0, 0}, key...)
		for _, f := range []func([]byte) uint32{PJW, BKDR, SDBM, BP, FNV} {
			if f(key) != f(longer) {
				t.Fatalf("%q: zero bytes in front change the hash", key)
			}
		}
	})
}

// TestCollisions holds the examples that the comments of the hashes give.
func TestCollisions(t *testing.T) {
	for _, c := range []struct {
		name string
		sum  func([]byte) uint32
		a, b string
	}{
		{"PJW", PJW, "ab", "bR"},
		{"DJB", DJB, "Ez", "FY"},
		{"DJB", DJB, "usEzr@example.com", "usFYr@example.com"},
		{"DEK", DEK, "an", "c."},
		{"DEK", DEK, "a234567890123456789012345678901.b", "b234567890123456789012345678901.a"},
	} {
		if c.sum([]byte(c.a)) != c.sum([]byte(c.b)) {
			t.Errorf("%s: %q and %q do not collide", c.name, c.a, c.b)
		}
	}
}

// BenchmarkSum measures the plain loops over a key of 33 bytes.
func BenchmarkSum(b *testing.B) {
	key := bytes.Repeat([]byte("spam@mx."), 4)
	key = append(key, 'x')
	for _, h := range Hashes() {
		b.Run(h.Name, func(b *testing.B) {
			b.SetBytes(int64(len(key)))
			for b.Loop() {
				h.Sum(key)
			}
		})
	}
}
