package hashlab

import (
	"context"
	"math/rand/v2"
	"strconv"

	"spamgate/internal/disposable"
)

// Numbers of keys of each generated corpus. The default is enough for filters of
// 2^20 bits and k = 7 at 5/4 of their capacity (129,788 keys) and
// [queriesPerFilter] queries; that of the full run likewise for 2^24 bits
// (2,076,621 keys).
const (
	generatedKeys     = 175_000
	generatedKeysFull = 2_400_000
)

// realList is the name of the corpus of the shipped list.
const realList = "real-list"

// source makes a corpus just before it is measured, so that only one is in memory
// at a time.
type source struct {
	name string
	keys int                                        // number of keys
	make func(ctx context.Context) (*Corpus, error) // its error is ctx's
}

// fixedSources returns the sources of existing corpora.
func fixedSources(corpora []*Corpus) []source {
	var all []source
	for _, c := range corpora {
		all = append(all, source{c.Name, len(c.Keys), func(context.Context) (*Corpus, error) { return c, nil }})
	}
	return all
}

// generated returns the source of n keys that next draws. The same seed gives the
// same keys.
func generated(seed uint64, n int, name, what string, next func(r *rand.Rand) func(dst []byte) []byte) source {
	return source{name, n, func(ctx context.Context) (*Corpus, error) {
		set, draw := newKeySet(), next(stream(seed, "corpus", name))
		var key []byte
		for len(set.keys) < n {
			if stopped(ctx, len(set.keys)) {
				return nil, ctx.Err()
			}
			key = draw(key[:0])
			set.add(key)
		}
		return &Corpus{Name: name, What: what, Keys: set.keys}, nil
	}}
}

// defaultSources returns the default corpora but for the keysets: the real list, and
// n keys of each generated kind.
func defaultSources(seed uint64, n int) []source {
	return []source{
		{realList, disposable.Count, func(context.Context) (*Corpus, error) {
			return &Corpus{Name: realList, What: "domains of throw-away mail providers, the shipped list", Keys: disposable.Domains()}, nil
		}},
		generated(seed, n, "one-domain", "generated addresses at example.com", func(r *rand.Rand) func([]byte) []byte {
			return numbered(newAddresses(r.Uint64(), 1).append)
		}),
		generated(seed, n, "many-domains", "generated addresses at 20,000 domains", func(r *rand.Rand) func([]byte) []byte {
			return numbered(newAddresses(r.Uint64(), manyDomains).append)
		}),
		generated(seed, n, "sequential", "decimal numbers in a row", func(*rand.Rand) func([]byte) []byte {
			return numbered(func(dst []byte, i uint64) []byte { return strconv.AppendUint(dst, 10_000_000+i, 10) })
		}),
		generated(seed, n, "random-bytes", "8 to 32 random bytes", func(r *rand.Rand) func([]byte) []byte {
			return func(dst []byte) []byte {
				for range 8 + r.IntN(25) {
					dst = append(dst, byte(r.Uint32()))
				}
				return dst
			}
		}),
		generated(seed, n, "short-domains", "domains of 2 to 4 characters and an ending", shortDomain),
	}
}

// numbered returns a function that appends the keys 0, 1, 2 … of at.
func numbered(locate func(dst []byte, i uint64) []byte) func([]byte) []byte {
	var i uint64
	return func(dst []byte) []byte {
		dst = locate(dst, i)
		i++
		return dst
	}
}

// endings are the top-level domains of generated domains.
var endings = []string{".com", ".net", ".org", ".de", ".info", ".io", ".fr", ".nl"}

// shortDomain returns a function that draws names like "k3b.de". Longer labels are
// more frequent, since more of them exist.
func shortDomain(r *rand.Rand) func([]byte) []byte {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	lengths := [10]int{2, 3, 3, 3, 4, 4, 4, 4, 4, 4}
	return func(dst []byte) []byte {
		for range lengths[r.IntN(len(lengths))] {
			dst = append(dst, letters[r.IntN(len(letters))])
		}
		return append(dst, endings[r.IntN(len(endings))]...)
	}
}
