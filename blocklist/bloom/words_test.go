package bloom

import (
	"math/rand/v2"
	"testing"

	"spamgate/hashfamily"
)

// checkWords compares the hashes that go by words with the plain loops.
func checkWords(t *testing.T, key []byte) {
	t.Helper()
	if got, want := bkdr(key), hashfamily.BKDR(key); got != want {
		t.Errorf("BKDR(%q) is %d by words, want %d", key, got, want)
	}
	djb, dek := djbAndDEK(key)
	if want := hashfamily.DJB(key); djb != want {
		t.Errorf("DJB(%q) is %d by words, want %d", key, djb, want)
	}
	if want := hashfamily.DEK(key); dek != want {
		t.Errorf("DEK(%q) is %d by words, want %d", key, dek, want)
	}
	if a, b, c := leadersOf(key); a != hashfamily.BKDR(key) || b != djb || c != dek {
		t.Errorf("leadersOf(%q) is %d, %d, %d, want %d, %d, %d", key, a, b, c, hashfamily.BKDR(key), djb, dek)
	}
}

func TestWords(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for length := range 301 {
		key := make([]byte, length)
		checkWords(t, key)
		for i := range key {
			key[i] = 0xFF // the largest sums
		}
		checkWords(t, key)
		for range 20 {
			for i := range key {
				key[i] = byte(r.Uint32())
			}
			checkWords(t, key)
		}
	}
}

func FuzzWords(f *testing.F) {
	for _, key := range []string{"", "a", "seven77", "eight888", "spam@example.com", "\xff\xff\xff\xff\xff\xff\xff\xff\xff"} {
		f.Add([]byte(key))
	}
	f.Fuzz(func(t *testing.T, key []byte) { checkWords(t, key) })
}

// BenchmarkWords compares the two ways, for a key of 33 bytes.
func BenchmarkWords(b *testing.B) {
	key := []byte("newsletter.offers@shop.example.co")
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			hashfamily.BKDR(key)
			hashfamily.DJB(key)
			hashfamily.DEK(key)
		}
	})
	b.Run("words", func(b *testing.B) {
		for b.Loop() {
			bkdr(key)
			djbAndDEK(key)
		}
	})
	b.Run("words, one pass", func(b *testing.B) {
		for b.Loop() {
			leadersOf(key)
		}
	})
}
