package hashattack

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
)

// Ways to search for names.
const (
	Multicollision = "multicollision" // see the package comment
	BruteForce     = "brute force"    // names tried until they set all bits of the target
	Blind          = "blind"          // the attacker cannot know which names do
)

// Cost is what it takes to make a target a false positive of a filter of 2^28 bits
// over a family, by names that are listed.
type Cost struct {
	Family string `json:"family"`
	K      int    `json:"k"`

	// Secret is what the attacker does not know, "" for nothing.
	Secret string `json:"secret"`
	Search string `json:"search"`

	// Names are enough, and Tried is the number of names that the search looked at
	// (with a multicollision the number of hash states), in Seconds. They are upper
	// bounds: a better attack may need less. With a secret they are 0.
	Names   int     `json:"names"`
	Tried   uint64  `json:"tried"`
	Seconds float64 `json:"seconds"`

	// MayContain is the answer of a real filter with these names for the target.
	MayContain bool `json:"may_contain"`

	// Secrets is the trial of names under random secrets, if there is one.
	Secrets *Trial `json:"secrets,omitempty"`

	// Guesses is 1/FPR: how many names an attacker who chooses blindly sends, on
	// average, until one is a false positive of a filter of 10 million entries.
	Guesses float64 `json:"guesses"`
}

// costEntries is the number of entries for Cost.Guesses.
const costEntries = 10_000_000

// Costs attacks each family. Seed and Keys of the options are those of the search and
// of the trial of secrets. If ctx ends, it returns the costs so far and the error.
func Costs(ctx context.Context, target string, o KeyedOptions) ([]Cost, error) {
	target, err := readTarget(target)
	if err != nil {
		return nil, err
	}
	if o.Keys < 1 {
		return nil, fmt.Errorf("%d secrets: try at least one", o.Keys)
	}
	a := attacks{target: target, options: o}
	steps := []func(context.Context) error{
		a.classic,
		func(ctx context.Context) error { return a.brute(ctx, "weighted", "") },
		func(ctx context.Context) error { return a.brute(ctx, "digest", "") },
		func(ctx context.Context) error { return a.brute(ctx, "double:murmur3", "") },
		func(ctx context.Context) error { return a.brute(ctx, "seeded", "seed") },
		func(ctx context.Context) error { return a.brute(ctx, "double", "key") },
	}
	for i, step := range steps {
		if err := step(ctx); err != nil {
			return a.costs, err
		}
		if o.Progress != nil {
			o.Progress(i+1, len(steps))
		}
	}
	return a.costs, nil
}

// attacks collects the costs of attacks on a target.
type attacks struct {
	target  string
	options KeyedOptions
	costs   []Cost
}

// add adds a cost and completes it.
func (a *attacks) add(c Cost, independent int) {
	c.Guesses = 1 / bloom.FPR(bloom.ClassicBits, independent, costEntries)
	a.costs = append(a.costs, c)
}

// classic attacks the classic families, which have a search of their own.
func (a *attacks) classic(ctx context.Context) error {
	start := time.Now()
	r, err := Search(ctx, Options{Target: a.target, Seed: a.options.Seed})
	if err != nil {
		return err
	}
	seconds := time.Since(start).Seconds()
	var names []string
	for _, n := range r.Names {
		names = append(names, n.Name)
	}
	for _, name := range []string{"classic", "classic9"} {
		spec, f, err := a.family(name, nil, 0)
		if err != nil {
			return err
		}
		set, total := covered(f, a.target, names)
		a.add(Cost{Family: name, K: f.K(), Search: Multicollision, Names: len(names), Tried: r.Work, Seconds: seconds, MayContain: set == total}, spec.Independent(f.K()))
	}
	return nil
}

// family returns a family under a key or seed.
func (a *attacks) family(name string, key []byte, seed uint64) (hashfamily.Spec, hashfamily.Family, error) {
	if name == "seeded" {
		name = fmt.Sprintf("seeded:%d", seed)
	}
	spec, err := hashfamily.ParseSpec(name)
	if err != nil {
		return spec, nil, err
	}
	k := spec.K()
	if k == 0 {
		k = KeyedK
	}
	f, err := spec.New(hashfamily.Params{M: bloom.ClassicBits, K: k, Key: key})
	return spec, f, err
}

// brute attacks a family by brute force. If it has a secret, this is with the secret
// known, and a second row has the names under random secrets.
func (a *attacks) brute(ctx context.Context, name, secret string) error {
	random := newKeySource(a.options.Seed).random
	key := make([]byte, hashfamily.KeySize)
	random.Read(key) // never fails
	spec, f, err := a.family(name, key, 0)
	if err != nil {
		return err
	}
	start := time.Now()
	g, err := bruteForce(ctx, a.target, f, a.options.Seed, nil)
	if err != nil {
		return err
	}
	shown := name
	if secret != "" {
		shown += ", " + secret + " known"
	}
	a.add(Cost{Family: shown, K: f.K(), Search: BruteForce, Names: len(g.Names), Tried: g.Examined, Seconds: time.Since(start).Seconds(), MayContain: g.MayContain}, spec.Independent(f.K()))
	if secret == "" {
		return nil
	}
	trial, err := a.trial(ctx, name, g.Names, rand.New(random))
	if err != nil {
		return err
	}
	a.add(Cost{Family: name + ", " + secret + " secret", K: f.K(), Secret: secret, Search: Blind, Secrets: &trial}, spec.Independent(f.K()))
	return nil
}

// trial counts the random secrets under which the names make the target a maybe.
func (a *attacks) trial(ctx context.Context, name string, names []string, random *rand.Rand) (Trial, error) {
	t := Trial{Names: len(names), Keys: a.options.Keys}
	key := make([]byte, hashfamily.KeySize)
	for range t.Keys {
		if err := ctx.Err(); err != nil {
			return t, fmt.Errorf("interrupted: %w", err)
		}
		for i := range key {
			key[i] = byte(random.Uint32())
		}
		_, f, err := a.family(name, key, random.Uint64())
		if err != nil {
			return t, err
		}
		set, total := covered(f, a.target, names)
		t.Bits += set
		if set == total {
			t.Maybes++
		}
	}
	t.Upper = upperLimit(t.Maybes, t.Keys)
	return t, nil
}
