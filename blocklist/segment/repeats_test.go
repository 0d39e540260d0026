package segment

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// A list that is mostly one key takes no more memory than that key, and says the
// same as any other.
func TestRepeatedKey(t *testing.T) {
	r := rand.New(rand.NewPCG(27, 28))
	often := strings.Repeat("k", 1000)
	entries := randomEntries(r, 1000)
	for i := range 3 * unevenSize / len(often) {
		e := Entry{Key: often, Defer: i%2 == 0, File: r.IntN(3), Line: i + 1, Reason: "a reason"}
		if i%7 == 0 {
			e.Until = 1 + r.Int64N(1000)
		}
		entries = append(entries, e)
	}
	b := NewBuilder(BuildOptions{Dir: t.TempDir(), Key: &testKey, Memory: 1 << 20})
	a := b.Adder()
	for _, e := range entries {
		if err := a.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	part := testKey.Hash([]byte(often)) >> 56
	if size := b.parts[part].size; size > unevenSize+2*chunkSize {
		t.Errorf("the partition of the key takes %d bytes", size)
	}
	s, err := b.Finish(t.Context(), "", Header{Meta: []byte("meta")})
	if err != nil {
		t.Fatal(err)
	}
	check(t, s, entries)
}
