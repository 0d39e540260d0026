package bloom

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// mayContainPlain is MayContain as one straight loop.
func mayContainPlain(f *Filter, key []byte) bool {
	for _, i := range f.family.AppendIndices(nil, key) {
		if f.bits[i/8]>>(i%8)&1 == 0 {
			return false
		}
	}
	return true
}

// TestMayContainIsPlain asks filters of every family for keys, while they get
// from empty to full.
func TestMayContainIsPlain(t *testing.T) {
	for _, m := range []uint64{61, 64, 5000, 8192} {
		for _, family := range allFamilies(t, m) {
			f, err := New(family)
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(m, uint64(family.K())))
			answers := map[bool]int{}
			for answers[true] < 1000 {
				for range 20 {
					key := randomKey(r)
					got := f.MayContain(key)
					if got != mayContainPlain(f, key) {
						t.Fatalf("%s, m=%d: MayContain(%q) = %v", family.Name(), m, key, got)
					}
					answers[got]++
				}
				f.Add(randomKey(r))
			}
			if answers[false] < 20 {
				t.Errorf("%s, m=%d: answers %v: too few were false", family.Name(), m, answers)
			}
		}
	}
}

// FuzzMayContain adds the lines of one input to filters of every family, over any
// m, and asks for those and for the lines of another.
func FuzzMayContain(f *testing.F) {
	f.Add(uint16(999), []byte("spam@example.com\n@offers.example\n\nb\xfccher.example"), []byte("ham@example.com\noffers.example"))
	f.Add(uint16(1023), []byte("a\nb\nc\nd\ne"), []byte("f\ng\nh\ni\nj"))
	f.Add(uint16(0), []byte{}, []byte("a"))
	f.Fuzz(func(t *testing.T, bits uint16, added, asked []byte) {
		for _, family := range allFamilies(t, 1+uint64(bits)) {
			filter, err := New(family)
			if err != nil {
				t.Fatal(err)
			}
			keys := bytes.Split(added, []byte("\n"))
			filter.AddAll(keys)
			for _, key := range keys {
				checkLook(t, filter, key)
				if !filter.MayContain(key) {
					t.Errorf("%s, m=%d: %q was added and is denied", family.Name(), family.M(), key)
				}
			}
			for _, key := range bytes.Split(asked, []byte("\n")) {
				checkLook(t, filter, key)
				if got := filter.MayContain(key); got != mayContainPlain(filter, key) {
					t.Errorf("%s, m=%d: MayContain(%q) = %v", family.Name(), family.M(), key, got)
				}
			}
		}
	})
}
