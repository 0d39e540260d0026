package hashlab

import (
	"fmt"
	"strconv"
)

// NameSet is a set of keys of one kind that are made when needed: millions need no
// memory.
type NameSet struct {
	Name, Example string

	// New returns a function that appends the i-th key to dst. Different numbers have
	// different keys. The seed chooses keys of a random kind, and changes none of a
	// regular one.
	New func(seed uint64) func(dst []byte, i uint64) []byte
}

// NameSets returns the sets of the measurement at full size: random keys, and names as
// they are made in large numbers, by people or by programs.
func NameSets() []NameSet {
	regular := func(name string, locate func(dst []byte, i uint64) []byte) NameSet {
		return NameSet{name, string(locate(nil, 1)), func(uint64) func([]byte, uint64) []byte { return locate }}
	}
	return []NameSet{
		{"random addresses", "bado_kisera7@lomari.com", func(seed uint64) func([]byte, uint64) []byte {
			return newAddresses(seed, manyDomains).append
		}},
		{"letters at one domain", "qmzkwbta@gmail.com", func(seed uint64) func([]byte, uint64) []byte {
			order := newPermutation(seed, 26*26*26*26*26*26*26*26)
			return func(dst []byte, i uint64) []byte { return append(appendLetters(dst, order.at(i)), "@gmail.com"...) }
		}},
		{"VERP", "bounce-0000001-bado=lomari.com@lists.example.net", func(seed uint64) func([]byte, uint64) []byte {
			order := newPermutation(seed, syllables*syllables*manyDomains)
			return func(dst []byte, i uint64) []byte {
				dst = append(appendPadded(append(dst, "bounce-"...), i, 7), '-')
				to := order.at(i % order.n)
				dst = append(appendSyllables(dst, to, 2), '=')
				return append(appendDomain(dst, to/(syllables*syllables)), "@lists.example.net"...)
			}
		}},
		regular("host names in a row", func(dst []byte, i uint64) []byte {
			return fmt.Appendf(dst, "host-%d-%d-%d-%d.example.net", 10+i>>24, i>>16&255, i>>8&255, i&255)
		}),
		regular("mxN.example.net", func(dst []byte, i uint64) []byte {
			return append(strconv.AppendUint(append(dst, "mx"...), i, 10), ".example.net"...)
		}),
		regular("user%08d@example.com", func(dst []byte, i uint64) []byte {
			return append(appendPadded(append(dst, "user"...), i, 8), "@example.com"...)
		}),
	}
}

// appendLetters appends eight letters, v's digits in base 26.
func appendLetters(dst []byte, v uint64) []byte {
	for range 8 {
		dst = append(dst, byte('a'+v%26))
		v /= 26
	}
	return dst
}

// appendPadded appends v with zeros before it up to a number of digits.
func appendPadded(dst []byte, v uint64, digits int) []byte {
	var text [20]byte
	number := strconv.AppendUint(text[:0], v, 10)
	for range digits - len(number) {
		dst = append(dst, '0')
	}
	return append(dst, number...)
}
