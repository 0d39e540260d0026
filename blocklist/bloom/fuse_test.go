package bloom

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

func newFuse(tb testing.TB, width int, keys []hashed) *Fuse {
	tb.Helper()
	f, err := NewFuse(tb.Context(), width, uint64(len(keys)), scanOf(keys))
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// stored writes the filter and reads it again.
func stored(tb testing.TB, f *Fuse) *Fuse {
	tb.Helper()
	var b bytes.Buffer
	if err := f.WriteBits(&b, testBits); err != nil {
		tb.Fatal(err)
	}
	g, err := ReadFuse(&b, testBits)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// Whatever is in it is found, before and after it was stored; of what is not as
// many pass as the width says.
func TestFuse(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 7))
	for _, width := range []int{8, 16, 32} {
		for _, n := range []int{0, 1, 2, 3, 10, 1000, 70_000} {
			keys := makeKeys("k", n)
			made := newFuse(t, width, keys)
			for _, f := range []*Fuse{made, stored(t, made)} {
				if f.Keys() != uint64(n) || f.Width() != width || f.Bytes() != made.Bytes() {
					t.Fatalf("%d bits, %d keys: %d keys, %d bits, %d bytes", width, n, f.Keys(), f.Width(), f.Bytes())
				}
				for _, k := range keys {
					if !f.MayContain(k.hash) {
						t.Fatalf("%d bits, %d keys: %q is not found", width, n, k.key)
					}
				}
				const asked = 200_000
				wrong := 0
				for range asked {
					if f.MayContain(r.Uint64()) {
						wrong++
					}
				}
				if want := f.FPR() * asked; math.Abs(float64(wrong)-want) > 5*math.Sqrt(want)+1 {
					t.Errorf("%d bits, %d keys: %d of %d passed, and %.1f were expected", width, n, wrong, asked, want)
				}
			}
		}
	}
}

// Keys that are divided among filters, of which some are empty.
func TestFuseDivided(t *testing.T) {
	keys := makeKeys("k", 5)
	made, err := NewFuse(t.Context(), 16, 40*fuseKeys, scanOf(keys))
	if err != nil {
		t.Fatal(err)
	}
	f := stored(t, made)
	if len(f.filters) != 40 {
		t.Fatalf("%d filters", len(f.filters))
	}
	for _, k := range keys {
		if !f.MayContain(k.hash) {
			t.Errorf("%q is not found", k.key)
		}
	}
}

func TestFuseOfEqualHashes(t *testing.T) {
	keys := []hashed{{5, []byte("a")}, {5, []byte("b")}, {9, []byte("c")}}
	f := newFuse(t, 8, keys)
	if f.Keys() != 2 || !f.MayContain(5) || !f.MayContain(9) {
		t.Errorf("%d keys, 5: %t, 9: %t", f.Keys(), f.MayContain(5), f.MayContain(9))
	}
}

func TestFuseFails(t *testing.T) {
	keys := makeKeys("k", 100)
	if _, err := NewFuse(t.Context(), 8, 100, failingScan(keys, 10)); !errors.Is(err, errScan) {
		t.Errorf("a scan that fails: %v", err)
	}
	if _, err := NewFuse(t.Context(), 9, 100, scanOf(keys)); err == nil {
		t.Error("fingerprints of 9 bits: no error")
	}
}

func TestFuseWidth(t *testing.T) {
	for _, c := range []struct {
		fpr  float64
		want int
	}{{0.5, 8}, {0.004, 8}, {0.0039, 16}, {1.6e-5, 16}, {1.5e-5, 32}, {1e-12, 32}} {
		if got := FuseWidth(c.fpr); got != c.want {
			t.Errorf("%v: %d bits, want %d", c.fpr, got, c.want)
		}
	}
}

func TestDamagedFuse(t *testing.T) {
	for _, width := range []int{8, 16, 32} {
		var b bytes.Buffer
		if err := newFuse(t, width, makeKeys("k", 20)).WriteBits(&b, testBits); err != nil {
			t.Fatal(err)
		}
		part := b.Bytes()
		for i := range part {
			other := bytes.Clone(part)
			other[i] ^= 1 << (i % 8)
			if _, err := ReadFuse(bytes.NewReader(other), testBits); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrOther) {
				t.Errorf("byte %d of %d is another: %v", i, len(part), err)
			}
			if _, err := ReadFuse(bytes.NewReader(part[:i]), testBits); !errors.Is(err, ErrDamaged) {
				t.Errorf("cut at byte %d: %v", i, err)
			}
		}
	}
}

// FuzzReadFuse: whatever bytes are given as a body, neither reading nor asking
// panics.
func FuzzReadFuse(f *testing.F) {
	for _, n := range []int{0, 1, 20} {
		var b bytes.Buffer
		if err := newFuse(f, 8, makeKeys("k", n)).WriteBits(&b, testBits); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes()[bitsHeaderSize : b.Len()-checksumSize])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, width := range []int{8, 16, 32} {
			var b bytes.Buffer
			var h bitsHeader
			h.ListBits, h.Encoding, h.Count, h.Length = testBits, fuseEncoding(width), 1, uint64(len(body))
			p := newBitsWriter(&b, h)
			p.write(body)
			if err := p.close(); err != nil {
				t.Fatal(err)
			}
			if fuse, err := ReadFuse(&b, testBits); err == nil {
				for hash := uint64(1); hash != 0; hash *= 6 {
					fuse.MayContain(hash)
				}
				fuse.MayContain(1<<64 - 1)
			}
		}
	})
}

func TestFuseBytes(t *testing.T) {
	for _, c := range []struct {
		keys int
		off  float64
	}{{1000, 0.3}, {20_000, 0.15}, {300_000, 0.05}} {
		for _, width := range []int{8, 32} {
			is, says := newFuse(t, width, makeKeys("k", c.keys)).Bytes(), FuseBytes(uint64(c.keys), width)
			if off := math.Abs(float64(says)/float64(is) - 1); off > c.off {
				t.Errorf("%d keys, %d bits: %d bytes, and the formula says %d", c.keys, width, is, says)
			}
		}
	}
	if FuseBytes(0, 8) != 0 {
		t.Error("no keys take something")
	}
}
