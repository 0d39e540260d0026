package bloom

import (
	"bytes"
	"fmt"
	"testing"

	"spamgate/hashfamily"
)

func newOf(tb testing.TB, family hashfamily.Family) *Filter {
	tb.Helper()
	f, err := New(family)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// Whatever the size of the bitmap, dealt keys set the bits that AddAll sets, and
// as many are counted.
func TestDealIsAddAll(t *testing.T) {
	var keys [][]byte
	for _, k := range makeKeys("deal", 60_000) {
		keys = append(keys, k.key)
	}
	for _, m := range []uint64{1<<dealRegion + 1, 5<<dealRegion - 8} {
		for _, family := range allFamilies(t, m) {
			dealt, plain := newOf(t, family), newOf(t, family)
			d := newDealer(dealt, dealFrom)
			if d == nil {
				t.Fatalf("%d bits are not dealt", m)
			}
			for i := 0; i < len(keys); i += fillBatch {
				d.addAll(keys[i:min(i+fillBatch, len(keys))])
			}
			d.close()
			plain.AddAll(keys)
			if !bytes.Equal(dealt.bits, plain.bits) || dealt.setBits != plain.setBits {
				t.Errorf("%s, m = %d: %d bits set, plainly %d", family.Name(), m, dealt.setBits, plain.setBits)
			}
		}
	}
}

// Every index of a bitmap of any size has a region, and they are no more than
// their memory is said to be.
func TestDealRegions(t *testing.T) {
	for _, m := range []uint64{1<<dealRegion + 1, ClassicBits, ClassicBits + 1, 1<<29 - 8, 1 << 29, MaxBits} {
		d := newDealer(&Filter{m: m}, dealFrom)
		if last := (m - 1) >> d.shift; last != uint64(len(d.dealt)-1) || len(d.dealt) > dealRegions || len(d.hands) != len(d.dealt)*dealHand {
			t.Errorf("m = %d: the last region is %d of %d, of 2^%d bits", m, last, len(d.dealt), d.shift)
		}
		d.release()
	}
}

// So few keys that dealing is not worth it, and bitmaps that are near anyway.
func TestDealOfFew(t *testing.T) {
	family, err := hashfamily.NewClassic(1 << 28)
	if err != nil {
		t.Fatal(err)
	}
	small, err := hashfamily.NewClassic(1 << dealRegion)
	if err != nil {
		t.Fatal(err)
	}
	if newDealer(newOf(t, family), dealFrom-1) != nil || newDealer(newOf(t, small), 1<<30) != nil {
		t.Error("dealt")
	}
}

// BenchmarkDeal fills a classic bitmap with a million keys.
func BenchmarkDeal(b *testing.B) {
	family, err := hashfamily.NewClassic(ClassicBits)
	if err != nil {
		b.Fatal(err)
	}
	var keys [][]byte
	for i := range 1 << 20 {
		keys = append(keys, fmt.Appendf(nil, "mail.offers-%d.example%d.com", i*7919, i%13))
	}
	f := newOf(b, family)
	var release func()
	f.bits, release = newScratch(len(f.bits)) // as in WriteListBits
	defer release()
	f.AddAll(keys) // the pages are there
	b.Run("dealt", func(b *testing.B) {
		for b.Loop() {
			d := newDealer(f, uint64(len(keys)))
			for i := 0; i < len(keys); i += fillBatch {
				d.addAll(keys[i:][:fillBatch])
			}
			d.close()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/key")
	})
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			f.AddAll(keys)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/key")
	})
}
