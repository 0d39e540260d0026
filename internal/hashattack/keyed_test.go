package hashattack

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
)

func testFamily(t *testing.T, m uint64, key byte) hashfamily.Family {
	secret := make([]byte, hashfamily.KeySize)
	secret[0] = key
	f, err := hashfamily.NewDouble(m, KeyedK, secret)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestCoveredIsTheFilter compares covered with a filter small enough to say
// maybe now and then.
func TestCoveredIsTheFilter(t *testing.T) {
	names := []string{"a.com", "b.com", "c.com", "d.com", "e.com", "f.com", "g.com", "h.com", "i.com", "j.com"}
	maybes := 0
	for key := range byte(200) {
		f := testFamily(t, 64, key)
		filter, err := bloom.New(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			filter.Add([]byte(n))
		}
		set, total := covered(f, "example.com", names)
		if maybe := filter.MayContain([]byte("example.com")); maybe != (set == total) || total > KeyedK {
			t.Errorf("key %d: %d of %d covered, the filter says %v", key, set, total, maybe)
		} else if maybe {
			maybes++
		}
	}
	if maybes == 0 || maybes == 200 {
		t.Errorf("%d maybes show nothing", maybes)
	}
}

// TestSetsFailUnderKeys lists the known sets under random keys.
func TestSetsFailUnderKeys(t *testing.T) {
	keys := newKeySource(1)
	for target, list := range sets(t) {
		got, err := try(t.Context(), target, namesOf(list), keys, 1000)
		if err != nil || got.Maybes != 0 || got.Bits > 2 || got.Names != len(teams) || got.Keys != 1000 {
			t.Errorf("%s: %+v, %v", target, got, err)
		}
	}
}

// TestGuessKey searches in small filters, and wants the same on one processor as
// on several, and failure under another key.
func TestGuessKey(t *testing.T) {
	const target, m = "example.com", 1 << 20
	var names [][]string
	for _, processors := range []int{1, 3} {
		before := runtime.GOMAXPROCS(processors)
		g, err := guessKey(t.Context(), target, testFamily(t, m, 1), KeyedOptions{Seed: 1})
		runtime.GOMAXPROCS(before)
		if err != nil || !g.MayContain || len(g.Names) > KeyedK || g.Examined == 0 {
			t.Fatalf("%+v, %v", g, err)
		}
		names = append(names, g.Names)
	}
	if !slices.Equal(names[0], names[1]) {
		t.Errorf("%q on one processor, %q on several", names[0], names[1])
	}
	for _, name := range names[0] {
		if err := checkName(name, target); err != nil {
			t.Error(err)
		}
	}
	if set, total := covered(testFamily(t, m, 2), target, names[0]); set == total {
		t.Errorf("another key: %d of %d bits are set", set, total)
	}
}

// TestScanNames wants names that can be listed, for endings of every shape.
func TestScanNames(t *testing.T) {
	for _, target := range []string{"example.com", "a.uk", "bbc.co.uk", "abcdefgh.d", "ab.c", "www.ck"} {
		s := newScan(target, testFamily(t, 1<<20, 1), 1)
		seen := map[string]bool{}
		for n := range uint64(100) {
			name := string(s.name(nil, n))
			if err := checkName(name, target); err != nil || seen[name] {
				t.Errorf("%s: %s: %v", target, name, err)
			}
			seen[name] = true
		}
	}
}

func TestTryKeyedStops(t *testing.T) {
	r, err := Judge("example.com", []string{"other.com"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if k, err := TryKeyed(ctx, r, KeyedOptions{Keys: 1}); k != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", k, err)
	}
	if k, err := TryKeyed(t.Context(), r, KeyedOptions{}); k != nil || err == nil {
		t.Errorf("no keys: %v, %v", k, err)
	}
	r.Names = nil
	if k, err := TryKeyed(t.Context(), r, KeyedOptions{Keys: 1}); k != nil || err == nil {
		t.Errorf("no names: %v, %v", k, err)
	}
}

// TestUpperLimit has the limits of Clopper and Pearson's article and tables: one
// sided, 95%.
func TestUpperLimit(t *testing.T) {
	for _, tt := range []struct {
		x, n int
		want float64
	}{
		{0, 1, 0.95},
		{0, 10, 0.2589},
		{0, 1000, 0.002991},
		{1, 10, 0.3942},
		{5, 10, 0.7776},
		{10, 10, 1},
	} {
		if got := upperLimit(tt.x, tt.n); math.Abs(got-tt.want) > 5e-4*tt.want {
			t.Errorf("upperLimit(%d, %d) = %v, want %v", tt.x, tt.n, got, tt.want)
		}
	}
}
