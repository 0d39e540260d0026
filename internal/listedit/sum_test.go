package listedit

import (
	"crypto/sha256"
	"math/rand/v2"
	"testing"
)

// TestSum writes pieces of all sizes, from a buffer that changes at once.
func TestSum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		s, want := newSum(), sha256.New()
		var piece [5000]byte
		for range r.IntN(50) {
			p := piece[:r.IntN(len(piece))]
			for i := range p {
				p[i] = byte(r.Uint32())
			}
			want.Write(p)
			if n, err := s.Write(p); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
			clear(p)
		}
		if got := s.end(); got != [sha256.Size]byte(want.Sum(nil)) || got != s.end() {
			t.Fatalf("%x, want %x", got, want.Sum(nil))
		}
	}
}
