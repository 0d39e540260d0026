package listfile

import (
	_ "embed"
	"strings"

	"github.com/zeebo/xxh3"
	"golang.org/x/net/publicsuffix"
)

// suffixFile is a Bloom filter of the names that suffixOf has an answer for: the
// version of publicsuffix.org's list that it was made of, a newline, and
// suffixFilterBits bits. After an update of that list, or of tenants:
//
//	go test -run=SuffixFilterIsCurrent -update ./blocklist/listfile
//
//go:embed suffixes.bits
var suffixFile string

// suffixFilterBits is a power of two. Of the domains that are no suffix one in
// eighty passes.
const suffixFilterBits = 1 << 17

// suffixFilter is the bits; "" where they are of another version of the list.
var suffixFilter = func() string {
	version, bits, _ := strings.Cut(suffixFile, "\n")
	if version != publicsuffix.List.String() || len(bits) != suffixFilterBits/8 {
		return ""
	}
	return bits
}()

// maybeSuffix reports whether a domain may be a suffix in the sense of suffixOf:
// false is certain. It takes a seventh of the time of a look-up in the list,
// which was a fifth of the time from text to index (BenchmarkSuffixOf).
func maybeSuffix(d string) bool {
	_, parent, ok := strings.Cut(d, ".")
	if !ok || suffixFilter == "" {
		return true
	}
	return hasSuffixBits(suffixHash(d)) || hasSuffixBits(wildcardHash(parent))
}

// suffixHash is for names that are suffixes themselves, wildcardHash for those
// below which every name is one.
func suffixHash(name string) uint64     { return xxh3.HashString(name) }
func wildcardHash(parent string) uint64 { return ^xxh3.HashString(parent) }

func hasSuffixBits(hash uint64) bool {
	i, j := suffixBits(hash)
	return suffixFilter[i>>3]&(1<<(i&7)) != 0 && suffixFilter[j>>3]&(1<<(j&7)) != 0
}

// suffixBits are the two bits of a hash.
func suffixBits(hash uint64) (i, j uint64) {
	return hash % suffixFilterBits, hash >> 32 % suffixFilterBits
}
