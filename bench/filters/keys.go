package main

import (
	"math/rand/v2"
	"strconv"
)

var words = []string{
	"an", "bel", "ca", "dor", "en", "fi", "gra", "ha", "ing", "jo", "ka", "lin", "mar", "net", "or",
	"pa", "qui", "ro", "sta", "ter", "u", "ven", "web", "xa", "yo", "zen", "mail", "shop", "data", "hub",
}

var tlds = []string{"com", "com", "com", "net", "org", "example", "info", "co.uk", "de", "xyz"}

// addresses makes up n mail addresses, the same for the same arguments. Each
// contains its serial number, from first on: ranges that do not overlap have no
// address in common.
func addresses(n, first int) [][]byte {
	r := rand.New(rand.NewPCG(uint64(first), 28))
	// One array holds the bytes of all, to save memory.
	var text []byte
	ends := make([]int, n)
	for i := range ends {
		text = append(appendWords(text, r), '.')
		text = append(strconv.AppendInt(text, int64(first+i), 36), '@')
		text = append(appendWords(text, r), '.')
		text = append(text, tlds[r.IntN(len(tlds))]...)
		ends[i] = len(text)
	}
	return cut(text, ends)
}

// cut divides text at the given places.
func cut(text []byte, ends []int) [][]byte {
	keys := make([][]byte, len(ends))
	start := 0
	for i, end := range ends {
		keys[i], start = text[start:end:end], end
	}
	return keys
}

// appendWords appends a made-up name of two to four syllables.
func appendWords(text []byte, r *rand.Rand) []byte {
	for range 2 + r.IntN(3) {
		text = append(text, words[r.IntN(len(words))]...)
	}
	return text
}

// sample returns n of the keys, drawn at random, the same for the same seed. They
// are copies in a row, like keys that arrive from outside, so that reading them
// from memory takes no longer than reading absent keys.
func sample(keys [][]byte, n int, seed uint64) [][]byte {
	r := rand.New(rand.NewPCG(seed, 29))
	var text []byte
	ends := make([]int, n)
	for i := range ends {
		text = append(text, keys[r.IntN(len(keys))]...)
		ends[i] = len(text)
	}
	return cut(text, ends)
}
