package hashlab

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
)

// Limits of a corpus.
const (
	// MinKeys is the least number of different keys that can be measured: enough
	// to half fill the smallest filter, of 2^10 bits with k = 1 (710 keys), and to
	// look up 250 others.
	MinKeys = 1000

	// MaxKeys is the greatest number of keys of a corpus, and MaxKeyBytes the
	// length of the longest. Both limit the memory.
	MaxKeys     = 1 << 24
	MaxKeyBytes = 1<<20 - 1

	// maxCorpusBytes is the limit of the bytes of all keys of a corpus.
	maxCorpusBytes = 1 << 30
)

// Corpus is a set of keys of one kind.
type Corpus struct {
	// Name is short, and What says in a few words what the keys are.
	Name, What string

	// Keys are the different keys, in the order of their first appearance.
	Keys [][]byte

	// Duplicates is the number of dropped duplicates, and Invalid the number of
	// lines that are not entries of a list.
	Duplicates, Invalid int
}

// info returns the corpus's description for the manifest.
func (c *Corpus) info() CorpusInfo {
	info := newCorpusInfo(c.Name, c.What, slices.Values(c.Keys))
	info.Duplicates, info.Invalid = c.Duplicates, c.Invalid
	return info
}

// newCorpusInfo returns the description of a corpus of different keys.
func newCorpusInfo(name, what string, keys iter.Seq[[]byte]) CorpusInfo {
	info := CorpusInfo{Name: name, What: what}
	sum := sha256.New()
	lines := bufio.NewWriterSize(sum, 1<<16) // a hash returns no error
	for key := range keys {
		info.Keys++
		info.Bytes += int64(len(key))
		lines.Write(key)
		lines.WriteByte('\n')
	}
	lines.Flush()
	info.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return info
}

// check returns an error if the corpus cannot be measured.
func (c *Corpus) check() error {
	switch n := len(c.Keys); {
	case n == 0:
		return fmt.Errorf("corpus %s is empty: give at least %d different keys, one a line", c.Name, MinKeys)
	case n < MinKeys:
		return fmt.Errorf("corpus %s: %d different keys are too few: give at least %d, to fill a filter and to look up others", c.Name, n, MinKeys)
	case n > MaxKeys:
		return fmt.Errorf("corpus %s: %d different keys are too many: give at most %d", c.Name, n, MaxKeys)
	}
	return nil
}

// blockBytes is the size of a block of memory for keys.
const blockBytes = 1 << 20

// keySet collects different keys. It copies them into large blocks, and finds
// them in a hash table with open addressing: for millions of short keys that is a
// third of the memory of a map of strings.
type keySet struct {
	keys  [][]byte
	bytes int64
	block []byte
	seed  maphash.Seed
	table []uint32 // index in keys plus one; 0 is free; the length is a power of two
}

func newKeySet() *keySet {
	return &keySet{seed: maphash.MakeSeed(), table: make([]uint32, 1<<10)}
}

// add adds a key, and reports whether it is new.
func (s *keySet) add(key []byte) bool {
	slot := s.find(key)
	if s.table[slot] != 0 {
		return false
	}
	if len(s.block)+len(key) > cap(s.block) {
		s.block = make([]byte, 0, max(blockBytes, len(key)))
	}
	start := len(s.block)
	s.block = append(s.block, key...)
	s.keys = append(s.keys, s.block[start:len(s.block):len(s.block)])
	s.bytes += int64(len(key))
	s.table[slot] = uint32(len(s.keys))
	if 2*len(s.keys) > len(s.table) {
		s.grow()
	}
	return true
}

// find returns the slot of the key, or the free one for it.
func (s *keySet) find(key []byte) uint64 {
	mask := uint64(len(s.table) - 1)
	slot := maphash.Bytes(s.seed, key) & mask
	for s.table[slot] != 0 && !bytes.Equal(s.keys[s.table[slot]-1], key) {
		slot = (slot + 1) & mask
	}
	return slot
}

// grow doubles the table.
func (s *keySet) grow() {
	s.table = make([]uint32, 2*len(s.table))
	for i, key := range s.keys {
		s.table[s.find(key)] = uint32(i + 1)
	}
}
