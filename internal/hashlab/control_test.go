package hashlab

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"spamgate/hashfamily"
)

func controls(seed, m uint64, k int) []hashfamily.Family {
	return []hashfamily.Family{newIdeal(seed, m, k), newXXH3(m, k)}
}

func TestControlsAreFamilies(t *testing.T) {
	for _, m := range []uint64{1, 2, 3, 1000, 1 << 20, 1 << 28, 1<<63 + 1} {
		for _, family := range controls(7, m, 11) {
			if family.M() != m || family.K() != 11 {
				t.Fatalf("%s: M %d, K %d", family.Name(), family.M(), family.K())
			}
			for _, key := range []string{"", "a", "spam@example.com"} {
				all := family.AppendIndices([]uint64{42}, []byte(key))
				if len(all) != 12 || all[0] != 42 {
					t.Fatalf("%s: %v", family.Name(), all)
				}
				for i, index := range all[1:] {
					if index >= m || family.Index(i, []byte(key)) != index {
						t.Errorf("%s, m=%d, %q: index %d is %d and %d", family.Name(), m, key, i, index, family.Index(i, []byte(key)))
					}
				}
			}
		}
	}
}

// XXH3-64 of nothing without a seed is 0x2D06800538D394C2: the first of the
// values that xxHash checks itself against (tests/sanity_test_vectors.h).
func TestXXH3Control(t *testing.T) {
	const empty = 0x2D06800538D394C2
	if got := newXXH3(1<<63, 1).Index(0, nil); got != empty&(1<<63-1) {
		t.Errorf("%#x, want %#x", got, uint64(empty&(1<<63-1)))
	}
	key := []byte("spam@example.com")
	if got, want := newXXH3(1<<32, 2).Index(0, key), xxh3.Hash(key)%(1<<32); got != want {
		t.Errorf("index 0 is %d, want XXH3 without a seed, %d", got, want)
	}
}

func TestIdealDependsOnSeed(t *testing.T) {
	key := []byte("spam@example.com")
	single := newIdeal(1, 1<<40, 5).AppendIndices(nil, key)
	if again := newIdeal(1, 1<<40, 5).AppendIndices(nil, key); !slices.Equal(single, again) {
		t.Errorf("one seed gave %v and %v", single, again)
	}
	if other := newIdeal(2, 1<<40, 5).AppendIndices(nil, key); slices.Equal(single, other) {
		t.Errorf("two seeds gave %v", single)
	}
}

// Functions made again from the same digests are others, independent of the ones
// before: two indices of one key are equal as rarely as chance makes them, and a
// table's row holds what the family says.
func TestIdealAgain(t *testing.T) {
	const m, k, keys = 1 << 10, 4, 20_000
	base := newIdeal(1, m, k)
	families := []*ideal{base, base.withSeed(1), base.withSeed(2), base.withSeed(3)}
	row := make([]uint32, k)
	var equal, pairs uint64
	for i := range keys {
		key := fmt.Appendf(nil, "%d@example.com", i)
		var indices [][]uint64
		for _, f := range families {
			all := f.AppendIndices(nil, key)
			f.drawRow(row, base.digest(key))
			for j := range row {
				if uint64(row[j]) != all[j] {
					t.Fatalf("%s: the row has %d, the family %d", key, row, all)
				}
			}
			indices = append(indices, all)
		}
		for a := range indices {
			for b := range a {
				for j := range k {
					pairs++
					if indices[a][j] == indices[b][j] {
						equal++
					}
				}
			}
		}
	}
	if low, high := clopperPearson(equal, pairs); low > 1.0/m || high < 1.0/m {
		t.Errorf("two functions are equal on %g to %g, want 1/%d", low, high, m)
	}
	if a, b := base.withSeed(5), base.withSeed(5); *a != *b {
		t.Error("one seed gives two functions")
	}
}

// Keys that are filled up to whole blocks stay different ones, from each other
// and from those that are not filled up.
func TestIdealTellsKeysApart(t *testing.T) {
	family := newIdeal(1, 1<<63, 2)
	seen := make(map[[2]uint64]string)
	check := func(key string) {
		indices := [2]uint64(family.AppendIndices(nil, []byte(key)))
		if other, ok := seen[indices]; ok {
			t.Errorf("%q and %q have the same indices", key, other)
		}
		seen[indices] = key
	}
	for n := range 200 {
		check(strings.Repeat("\x00", n)) // what is filled in, and nothing else
	}
	for n := 1; n < 64; n++ {
		check(strings.Repeat("a", n))
		check(strings.Repeat("a", n) + "\x00")
		block := 32 + n&32
		check(strings.Repeat("a", n) + strings.Repeat("\x00", block-1-n) + string(rune(n))) // the text that is hashed
	}
}

// Among the pairs of one key's indices (and of neighbouring keys' ones) no more
// are equal than chance makes equal.
func TestControlsAreIndependent(t *testing.T) {
	const m, k, keys = 1 << 10, 8, 20_000
	for _, family := range controls(1, m, k) {
		var within, across uint64
		var indices, before []uint64
		for i := range keys {
			indices = family.AppendIndices(indices[:0], fmt.Appendf(nil, "%d@example.com", i))
			for a := range k {
				for b := range a {
					if indices[a] == indices[b] {
						within++
					}
				}
				for _, index := range before {
					if index == indices[a] {
						across++
					}
				}
			}
			before = append(before[:0], indices...)
		}
		for _, c := range []struct {
			what        string
			hits, pairs uint64
		}{
			{"one key's indices", within, keys * k * (k - 1) / 2},
			{"neighbours' indices", across, (keys - 1) * k * k},
		} {
			if low, high := clopperPearson(c.hits, c.pairs); low > 1.0/m || high < 1.0/m {
				t.Errorf("%s: %s are equal on %g to %g, want 1/%d", family.Name(), c.what, low, high, m)
			}
		}
	}
}

func TestControlsDoNotAllocate(t *testing.T) {
	for _, family := range controls(1, 1<<28, 11) {
		buf := make([]uint64, 0, family.K())
		key := []byte("spam@example.com")
		if allocs := testing.AllocsPerRun(100, func() {
			family.AppendIndices(buf, key)
			family.Index(3, key)
		}); allocs != 0 {
			t.Errorf("%s: %v allocations, want 0", family.Name(), allocs)
		}
	}
}

// BenchmarkIdeal computes all indices of a key, by its length: filled up to whole blocks
// below 64 bytes, not so from there on.
func BenchmarkIdeal(b *testing.B) {
	family := newIdeal(1, 1<<28, 11)
	buf := make([]uint64, 0, family.K())
	for _, length := range []int{8, 31, 33, 63, 64, 65, 95, 97} {
		keys := randomKeys(1024, length)
		b.Run(fmt.Sprint(length), func(b *testing.B) {
			for i := range b.N {
				buf = family.AppendIndices(buf[:0], keys[i%len(keys)])
			}
		})
	}
}
