package hashlab

import (
	"math/bits"
	"math/rand/v2"
	"strconv"
)

// manyDomains is the number of domains of the addresses "at many domains".
const manyDomains = 20_000

// syllables is the number of syllables: 16 consonants with 4 vowels each.
const syllables = 64

// addresses is a sequence of different made-up mail addresses, each computed from
// its number: millions need no memory, and two ranges of numbers have no address
// in common.
type addresses struct {
	domains uint64 // 1: all at example.com
	order   permutation
}

// Numbers of values of the parts of a local part.
const (
	firstNames = syllables * syllables
	separators = 4
	lastNames  = syllables*syllables + syllables*syllables*syllables // of two or of three syllables
	suffixes   = 101                                                 // none, or 0 to 99
)

func newAddresses(seed, domains uint64) *addresses {
	return &addresses{domains, newPermutation(seed, firstNames*separators*lastNames*suffixes*domains)}
}

// append appends the i-th address, such as "bado_kisera7@example.com", for i below
// 4·10^11. Each part can be read back from the text, so that different numbers
// have different addresses.
func (a *addresses) append(dst []byte, i uint64) []byte {
	x := a.order.at(i)
	take := func(radix uint64) uint64 {
		v := x % radix
		x /= radix
		return v
	}
	dst = appendSyllables(dst, take(firstNames), 2)
	dst = append(dst, [separators]string{".", "_", "-", ""}[take(separators)]...)
	if v := take(lastNames); v < syllables*syllables {
		dst = appendSyllables(dst, v, 2)
	} else {
		dst = appendSyllables(dst, v-syllables*syllables, 3)
	}
	if v := take(suffixes); v > 0 {
		dst = strconv.AppendUint(dst, v-1, 10)
	}
	if a.domains == 1 {
		return append(dst, "@example.com"...)
	}
	return appendDomain(append(dst, '@'), take(a.domains))
}

// appendDomain appends the i-th made-up domain, for i below 64^3: three
// syllables and an ending. The product with an odd number scatters neighbours
// and keeps them different.
func appendDomain(dst []byte, i uint64) []byte {
	v := i * 0x9E3779B1 % (syllables * syllables * syllables)
	dst = appendSyllables(dst, v, 3)
	return append(dst, endings[v%uint64(len(endings))]...)
}

// appendSyllables appends n syllables, v's digits in base 64.
func appendSyllables(dst []byte, v uint64, n int) []byte {
	for range n {
		dst = append(dst, "bdfghklmnprstvwz"[v%16], "aeio"[v/16%4])
		v /= syllables
	}
	return dst
}

// permutation is a random order of the numbers below n, computed without memory: a
// Feistel network over an even number of bits, applied again if its result is not
// below n (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002).
type permutation struct {
	n    uint64
	half uint // bits of each side
	keys [4]uint64
}

// newPermutation returns a permutation for n from 2 to 2^62.
func newPermutation(seed, n uint64) permutation {
	r := rand.New(rand.NewPCG(seed, n))
	p := permutation{n: n, half: uint(bits.Len64(n-1)+1) / 2}
	for i := range p.keys {
		p.keys[i] = r.Uint64()
	}
	return p
}

// at returns the i-th number.
func (p *permutation) at(i uint64) uint64 {
	mask := uint64(1)<<p.half - 1
	for {
		left, right := i>>p.half, i&mask
		for _, key := range p.keys {
			left, right = right, left^mix(right+key)&mask
		}
		if i = left<<p.half | right; i < p.n {
			return i
		}
	}
}

// mix scatters the bits of x. It is the finaliser of SplitMix64 (Steele, Lea and
// Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
