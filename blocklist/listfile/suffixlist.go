package listfile

import (
	"strings"
	"sync"

	"github.com/zeebo/xxh3"

	"spamgate/internal/suffix"
)

// suffixFilterBits is a power of two. One in eighty of the domains that are not
// suffixes passes the filter.
const suffixFilterBits = 1 << 17

// suffixFilter is a Bloom filter of two bits for each suffix and tenant.
type suffixFilter [suffixFilterBits / 64]uint64

var suffixes = sync.OnceValue(func() *suffixFilter {
	f := new(suffixFilter)
	for _, name := range suffix.Rules() {
		hash := suffixHash(strings.TrimPrefix(name, "!"))
		if parent, ok := strings.CutPrefix(name, "*."); ok {
			hash = wildcardHash(parent)
		}
		i, j := suffixBits(hash)
		f[i>>6] |= 1 << (i & 63)
		f[j>>6] |= 1 << (j & 63)
	}
	return f
})

// maybe reports whether a domain may be a suffix or have tenants: false is certain.
// It takes a seventh of the time of a lookup in the rules, which would be a fifth
// of the time from text to index (BenchmarkSuffixOf).
func (f *suffixFilter) maybe(d string) bool {
	_, parent, ok := strings.Cut(d, ".")
	return !ok || f.has(suffixHash(d)) || f.has(wildcardHash(parent))
}

func (f *suffixFilter) has(hash uint64) bool {
	i, j := suffixBits(hash)
	return f[i>>6]&(1<<(i&63)) != 0 && f[j>>6]&(1<<(j&63)) != 0
}

// suffixHash returns the hash of a name that is a suffix itself, wildcardHash that
// of a name below which every name is one.
func suffixHash(name string) uint64     { return xxh3.HashString(name) }
func wildcardHash(parent string) uint64 { return ^xxh3.HashString(parent) }

// suffixBits returns the two bits of a hash.
func suffixBits(hash uint64) (i, j uint64) {
	return hash % suffixFilterBits, hash >> 32 % suffixFilterBits
}
