package hashattack

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
)

// TestBruteForce: in a small filter names are found quickly for every family, and a
// real filter with them says maybe.
func TestBruteForce(t *testing.T) {
	const m = 1 << 16
	for _, name := range []string{"weighted", "digest", "double:murmur3", "seeded", "double"} {
		spec, err := hashfamily.ParseSpec(name)
		if err != nil {
			t.Fatal(err)
		}
		k := spec.K()
		if k == 0 {
			k = KeyedK
		}
		f, err := spec.New(hashfamily.Params{M: m, K: k, Key: make([]byte, hashfamily.KeySize)})
		if err != nil {
			t.Fatal(err)
		}
		g, err := bruteForce(t.Context(), "example.com", f, 1, nil)
		if err != nil || !g.MayContain || len(g.Names) == 0 || len(g.Names) > k {
			t.Fatalf("%s: %+v, %v", name, g, err)
		}
		filter, err := bloom.New(f)
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range g.Names {
			if filter.MayContain([]byte("example.com")) {
				t.Errorf("%s: %d of %d names are enough", name, i, len(g.Names))
			}
			filter.Add([]byte(n))
		}
		if !filter.MayContain([]byte("example.com")) {
			t.Errorf("%s: the filter says no", name)
		}
	}
}

// TestTrialOfSecrets: names for one seed or key do nothing under others, and all if
// the secret is none.
func TestTrialOfSecrets(t *testing.T) {
	a := attacks{target: "example.com", options: KeyedOptions{Keys: 300, Seed: 1}}
	names := []string{"a.com", "b.com", "c.com"}
	for _, name := range []string{"double", "seeded"} {
		got, err := a.trial(t.Context(), name, names, rand.New(rand.NewPCG(1, 2)))
		if err != nil || got.Maybes != 0 || got.Keys != 300 || got.Upper > 0.011 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	got, err := a.trial(t.Context(), "double:murmur3", []string{"example.com"}, rand.New(rand.NewPCG(1, 2)))
	if err != nil || got.Maybes != 300 || got.Bits != 300*KeyedK {
		t.Errorf("the target itself: %+v, %v", got, err)
	}
}

func TestCostsRefuses(t *testing.T) {
	for target, keys := range map[string]int{"com": 10, "user@example.com": 10, "example.com": 0} {
		if costs, err := Costs(t.Context(), target, KeyedOptions{Keys: keys}); err == nil || costs != nil {
			t.Errorf("%s, %d keys: %v", target, keys, costs)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Costs(ctx, "example.com", KeyedOptions{Keys: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
