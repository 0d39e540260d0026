package blocklist

import (
	"os"
	"path/filepath"
	"testing"
)

// Beside a large filter the bits of a short list are not kept, since making them
// takes as long as the filter is large; those of a long one are.
func TestBitsOfShortListsAreNotMade(t *testing.T) {
	l := smallLayout(t, Filter{Kind: KindSharded})
	dir := t.TempDir()
	long, short := manyDomains(t, 60_000), manyDomains(t, 100)
	long.partIn, short.partIn = filePart{path: filepath.Join(dir, "long")}, filePart{path: filepath.Join(dir, "short")}
	set := makeSet(t, l, []*Index{long, short})
	m := set.filter.bitmaps.M()
	if !l.keepsBits(long.keys(), m) || l.keepsBits(short.keys(), m) || !l.keepsBits(short.keys(), l.classicBits) {
		t.Fatalf("%d bits: the test is of no use", m)
	}
	must(t, set.Settle())
	if long.bits == nil || short.bits != nil {
		t.Errorf("bits of the long list: %v, of the short one: %v", long.bits, short.bits)
	}
	if _, err := os.Stat(filepath.Join(dir, "long")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "short")); !os.IsNotExist(err) {
		t.Errorf("bits of the short list: %v", err)
	}
	for _, key := range []string{"d59999.example", "d99.example"} {
		if !set.filter.mayContain([]byte(key)) {
			t.Errorf("%s is not found", key)
		}
	}
}
