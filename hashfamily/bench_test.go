package hashfamily

import (
	"strings"
	"testing"
)

// benchKey has 33 bytes, as a mail address may.
var benchKey = []byte(strings.Repeat("spam@mx.", 4) + "x")

// BenchmarkAppendIndices measures the families over 2^28 bits, each with its own
// number of index functions, or with 7.
func BenchmarkAppendIndices(b *testing.B) {
	for _, name := range familyNames {
		family := makeFamily(b, name, 1<<28, 0)
		b.Run(strings.ReplaceAll(name, ":", "-"), func(b *testing.B) {
			room := make([]uint64, 0, family.K())
			b.ReportAllocs()
			for b.Loop() {
				family.AppendIndices(room, benchKey)
			}
		})
	}
}

// BenchmarkWeighted compares the pass over four seeds at once with a pass a seed.
func BenchmarkWeighted(b *testing.B) {
	family, err := NewWeighted(1 << 25)
	if err != nil {
		b.Fatal(err)
	}
	room := make([]uint64, 0, family.K())
	b.Run("four", func(b *testing.B) {
		for b.Loop() {
			family.AppendIndices(room, benchKey)
		}
	})
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			dst := room
			for i := range family.K() {
				dst = append(dst, family.Index(i, benchKey))
			}
		}
	})
}
