package hashattack

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mathext"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
)

// KeyedK is the number of index functions of the keyed filter, as many as the
// classic one has.
const KeyedK = 11

// KeyedOptions tells how to try the keyed filter.
type KeyedOptions struct {
	// Keys is the number of random keys to try, at least 1.
	Keys int

	// Seed makes keys and names repeatable.
	Seed uint64

	// Progress is as in Options; a step is a bit found under the guessed key.
	Progress func(done, total int)
}

// Keyed is the result of the attack against a filter with as many bits and index
// functions whose hash has a secret key ("double": HighwayHash-128).
type Keyed struct {
	K int `json:"k"`

	// Same is the trial of the names that fool the classic filter.
	Same Trial `json:"same_names"`

	// Guess is a search under a key that the attacker chose.
	Guess Guess `json:"guessed_key"`

	// Guessed is the trial of the names of Guess under other keys.
	Guessed Trial `json:"guessed_names"`

	// Log10Chance is the decimal logarithm of the probability that as many random
	// bits as Same sets contain all bits of the target.
	Log10Chance float64 `json:"log10_chance"`

	// HalfFill is the part of all bits that must be set for the target to be a
	// maybe with probability one half, and HalfNames how many random names set it.
	HalfFill  float64 `json:"half_fill"`
	HalfNames float64 `json:"half_names"`
}

// Trial is the effect of a set of names under many random keys.
type Trial struct {
	Names int `json:"names"`
	Keys  int `json:"keys"`

	// Maybes is the number of keys under which the target is a maybe, Upper the
	// upper limit of the part of such keys, at 95% confidence.
	Maybes int     `json:"maybes"`
	Upper  float64 `json:"upper"`

	// Bits is the number of the target's bits that were set, over all keys.
	Bits int `json:"bits"`
}

// TryKeyed attacks the keyed filter: with the names for the classic filter, and with
// names for a guessed key. The only possible search for these is brute force, which
// takes some seconds of all processors.
func TryKeyed(ctx context.Context, r *Result, o KeyedOptions) (*Keyed, error) {
	if o.Keys < 1 {
		return nil, fmt.Errorf("keyed filter: %d keys: try at least one", o.Keys)
	}
	if len(r.Names) == 0 {
		return nil, fmt.Errorf("keyed filter: no names to try")
	}
	keys := newKeySource(o.Seed)
	own, err := keys.family()
	if err != nil {
		return nil, err
	}
	guess, err := guessKey(ctx, r.Target, own, o)
	if err != nil {
		return nil, err
	}
	var same []string
	for _, n := range r.Names {
		same = append(same, n.Name)
	}
	k := &Keyed{K: KeyedK, Guess: *guess}
	if k.Same, err = try(ctx, r.Target, same, keys, o.Keys); err != nil {
		return nil, err
	}
	if k.Guessed, err = try(ctx, r.Target, guess.Names, keys, o.Keys); err != nil {
		return nil, err
	}
	k.Log10Chance = KeyedK * math.Log10(float64(KeyedK*len(same))/bloom.ClassicBits)
	k.HalfFill = math.Pow(0.5, 1.0/KeyedK)
	k.HalfNames = -bloom.ClassicBits / float64(KeyedK) * math.Log1p(-k.HalfFill)
	return k, nil
}

// keySource makes keyed families, each with a new key.
type keySource struct{ random *rand.ChaCha8 }

func newKeySource(seed uint64) keySource {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return keySource{rand.NewChaCha8(key)}
}

func (s keySource) family() (hashfamily.Family, error) {
	key := make([]byte, hashfamily.KeySize)
	s.random.Read(key) // never fails
	f, err := hashfamily.NewDouble(bloom.ClassicBits, KeyedK, key)
	if err != nil {
		return nil, fmt.Errorf("keyed filter: %w", err)
	}
	return f, nil
}

// try counts the keys under which the names make the target a maybe.
func try(ctx context.Context, target string, names []string, keys keySource, n int) (Trial, error) {
	t := Trial{Names: len(names), Keys: n}
	for range n {
		if err := ctx.Err(); err != nil {
			return t, fmt.Errorf("interrupted: %w", err)
		}
		f, err := keys.family()
		if err != nil {
			return t, err
		}
		set, total := covered(f, target, names)
		t.Bits += set
		if set == total {
			t.Maybes++
		}
	}
	t.Upper = upperLimit(t.Maybes, n)
	return t, nil
}

// covered returns how many of the target's different bits the names set, and how
// many there are. If all are set, a filter would say maybe; this needs no filter of
// 32 MiB.
func covered(f hashfamily.Family, target string, names []string) (set, total int) {
	open := map[uint64]bool{}
	for _, i := range f.AppendIndices(nil, []byte(target)) {
		open[i] = true
	}
	total = len(open)
	for _, name := range names {
		for _, i := range f.AppendIndices(nil, []byte(name)) {
			delete(open, i)
		}
	}
	return total - len(open), total
}

// upperLimit returns the largest probability at which x or fewer hits of n are not
// rarer than 5% (Clopper and Pearson 1934): about 3/n for none.
func upperLimit(x, n int) float64 {
	if x >= n {
		return 1
	}
	return mathext.InvRegIncBeta(float64(x+1), float64(n-x), 0.95)
}
