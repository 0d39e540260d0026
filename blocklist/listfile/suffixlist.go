package listfile

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/zeebo/xxh3"
)

// suffixFile is publicsuffix.org's list, as golang.org/x/net/publicsuffix has it.
// That package is not used here, because it imports net/http. A head with source
// and licence is followed by the rules of the ICANN section and those of the
// private one, each sorted and after an empty line. After an update of
// golang.org/x/net:
//
//	go test ./blocklist/listfile -run=SuffixesAreCurrent -update
//
//go:embed suffixes.txt
var suffixFile string

// suffixFilterBits is a power of two. One in eighty of the domains that are not
// suffixes passes the filter.
const suffixFilterBits = 1 << 17

// suffixList is suffixFile, ready for use.
type suffixList struct {
	icann, private suffixRules

	// filter is a Bloom filter of two bits for each suffix and tenant.
	filter [suffixFilterBits / 64]uint64
}

var suffixes = sync.OnceValue(func() *suffixList {
	sections := strings.Split(suffixFile, "\n\n")
	s := &suffixList{icann: newSuffixRules(sections[1]), private: newSuffixRules(sections[2])}
	for _, names := range [][]string{s.icann, s.private, tenants} {
		for _, name := range names {
			hash := suffixHash(strings.TrimPrefix(name, "!"))
			if parent, ok := strings.CutPrefix(name, "*."); ok {
				hash = wildcardHash(parent)
			}
			i, j := suffixBits(hash)
			s.filter[i>>6] |= 1 << (i & 63)
			s.filter[j>>6] |= 1 << (j & 63)
		}
	}
	return s
})

// maybe reports whether a domain may be a suffix or have tenants: false is certain.
// It takes a seventh of the time of a lookup in the rules, which would be a fifth
// of the time from text to index (BenchmarkSuffixOf).
func (s *suffixList) maybe(d string) bool {
	_, parent, ok := strings.Cut(d, ".")
	return !ok || s.has(suffixHash(d)) || s.has(wildcardHash(parent))
}

func (s *suffixList) has(hash uint64) bool {
	i, j := suffixBits(hash)
	return s.filter[i>>6]&(1<<(i&63)) != 0 && s.filter[j>>6]&(1<<(j&63)) != 0
}

// suffixHash returns the hash of a name that is a suffix itself, wildcardHash that
// of a name below which every name is one.
func suffixHash(name string) uint64     { return xxh3.HashString(name) }
func wildcardHash(parent string) uint64 { return ^xxh3.HashString(parent) }

// suffixBits returns the two bits of a hash.
func suffixBits(hash uint64) (i, j uint64) {
	return hash % suffixFilterBits, hash >> 32 % suffixFilterBits
}

// suffixRules are the sorted rules of a section: com, *.ck, !www.ck.
type suffixRules []string

func newSuffixRules(section string) suffixRules {
	return strings.Split(strings.TrimSuffix(section, "\n"), "\n")
}

// cover reports whether a rule makes d a suffix.
func (r suffixRules) cover(d string) bool {
	if r.have(d) {
		return true
	}
	_, parent, ok := strings.Cut(d, ".")
	return ok && r.have("*."+parent) && !r.have("!"+d)
}

func (r suffixRules) have(rule string) bool {
	_, found := slices.BinarySearch(r, rule)
	return found
}
