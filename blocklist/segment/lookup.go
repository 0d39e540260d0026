package segment

import (
	"bytes"
	"fmt"
	"math"

	"github.com/minio/highwayhash"
)

// Lookup returns the entry of a key, with its hash by [Key.Hash]. If there is none it
// does not allocate. The key of an entry for a recipient is made by [AppendFor]. The error
// wraps [ErrDamaged].
func (s *Segment) Lookup(hash uint64, key []byte) (found Record, ok bool, err error) {
	defer s.catch(panicOnFault(), &err)
	i, stored, err := s.record(hash, key)
	if stored == nil || err != nil {
		return Record{}, false, err
	}
	found, err = s.decode(i, stored)
	return found, err == nil, err
}

// Has reports whether a key is there, that of an entry or of a marker. It does not allocate.
func (s *Segment) Has(hash uint64, key []byte) (ok bool, err error) {
	defer s.catch(panicOnFault(), &err)
	_, stored, err := s.record(hash, key)
	return stored != nil && err == nil, err
}

// record returns the stored record of a key and its block; nil if there is none.
func (s *Segment) record(hash uint64, key []byte) (i int, stored []byte, err error) {
	i = s.find(hash)
	if i < 0 {
		return i, nil, nil
	}
	b, err := s.block(i)
	if err != nil {
		return i, nil, err
	}
	for j := b.search(hash, s.first(i), s.last(i)); j < b.len() && b.hash(j) == hash; j++ {
		stored, whole := b.record(j)
		k, _, readable := recordKey(stored)
		if !whole || !readable {
			return i, nil, s.damagedBlock(i)
		}
		if bytes.Equal(k, key) {
			return i, stored, nil
		}
	}
	return i, nil, nil
}

// decode decodes a stored record of block i.
func (s *Segment) decode(i int, stored []byte) (Record, error) {
	r, ok := parseRecord(stored)
	if !ok {
		return Record{}, s.damagedBlock(i)
	}
	reason, note, ok := s.commentOf(&r)
	if !ok {
		return Record{}, s.damagedBlock(i)
	}
	return r.entry(reason, note, s.markers > 0), nil
}

// stored returns the bytes and the place of block i.
func (s *Segment) stored(i int) (b []byte, p place, err error) {
	p = placeAt(s.places, i)
	end := uint64(len(s.blocks))
	if placeSize*(i+1) < len(s.places) {
		end = placeAt(s.places, i+1).offset
	}
	if p.offset > end || end > uint64(len(s.blocks)) {
		return nil, p, s.damagedBlock(i)
	}
	return s.blocks[p.offset:end], p, nil
}

// block returns block i. It compares the checksum when the block is first read.
func (s *Segment) block(i int) (block, error) {
	stored, p, err := s.stored(i)
	if err != nil {
		return block{}, err
	}
	seen, bit := &s.verified[i/32], uint32(1)<<(i%32)
	if seen.Load()&bit == 0 {
		if highwayhash.Sum64(stored, s.key[:]) != p.checksum {
			return block{}, s.damagedBlock(i)
		}
		seen.Or(bit)
	}
	b, ok := parseBlock(stored, p.entries)
	if !ok {
		return block{}, s.damagedBlock(i)
	}
	return b, nil
}

func (s *Segment) damagedBlock(i int) error {
	return s.failed(fmt.Errorf("%w: block %d of %d has changed since it was written", ErrDamaged, i+1, s.blockCount))
}

// ScanKeys calls fn with each key whose hash is in the range, both ends included, in order
// of hash and then key, until fn returns false. Markers are among them. The key is valid
// only during the call. The error wraps [ErrDamaged].
func (s *Segment) ScanKeys(from, to uint64, fn func(hash uint64, key []byte) bool) error {
	return s.walk(from, to, "", func(_ int, hash uint64, stored []byte) (bool, error) {
		key, _, ok := recordKey(stored)
		if !ok {
			return false, ErrDamaged
		}
		return fn(hash, key), nil
	})
}

// Scan is ScanKeys for the keys of entries, without markers.
func (s *Segment) Scan(from, to uint64, fn func(hash uint64, key []byte) bool) error {
	if s.markers == 0 {
		return s.ScanKeys(from, to, fn)
	}
	return s.ScanKeys(from, to, func(hash uint64, key []byte) bool {
		return bytes.HasSuffix(key, []byte(forEnd)) || fn(hash, key)
	})
}

// ScanFor is Scan for keys that contain a text, without markers. It reads through the blocks
// several times as fast, since it parses those alone that have the text somewhere. A block
// that was damaged so that it lost the text goes unnoticed.
func (s *Segment) ScanFor(from, to uint64, text string, fn func(key []byte) bool) error {
	return s.walk(from, to, text, func(_ int, _ uint64, stored []byte) (bool, error) {
		key, _, ok := recordKey(stored)
		if !ok {
			return false, ErrDamaged
		}
		return isMarker(stored) || !bytes.Contains(key, []byte(text)) || fn(key), nil
	})
}

// Records calls fn with each entry, in the order of [Segment.Scan], until fn
// returns false. Markers are no entries.
func (s *Segment) Records(fn func(Record) bool) error {
	return s.walk(0, math.MaxUint64, "", func(i int, _ uint64, stored []byte) (bool, error) {
		if isMarker(stored) {
			return true, nil
		}
		r, err := s.decode(i, stored)
		return err == nil && fn(r), err
	})
}

// giveBackAfter is the number of bytes after which a walk releases their memory. Else a
// walk through a long list, to make a filter of it, would keep all of it resident,
// though most of it is not read again.
const giveBackAfter = 32 << 20

// walk calls fn with the block, hash and stored record of each entry in a range
// of hashes, until fn returns false. It skips blocks that do not contain text.
func (s *Segment) walk(from, to uint64, text string, fn func(i int, hash uint64, stored []byte) (bool, error)) (err error) {
	defer s.catch(panicOnFault(), &err)
	passed := uint64(0) // the offset to which pages were released, or of the start
	for i := max(s.find(from), 0); i < len(s.firsts)/8 && s.first(i) <= to; i++ {
		switch index := placeAt(s.places, i).offset; {
		case passed == 0:
			passed = index
		case index-passed >= giveBackAfter:
			s.giveBack(passed, index)
			passed = index
		}
		if text != "" {
			stored, _, err := s.stored(i)
			if err != nil {
				return err
			}
			if !bytes.Contains(stored, []byte(text)) {
				continue
			}
		}
		b, err := s.block(i)
		if err != nil {
			return err
		}
		for j := b.search(from, s.first(i), s.last(i)); j < b.len() && b.hash(j) <= to; j++ {
			stored, ok := b.record(j)
			if !ok {
				return s.damagedBlock(i)
			}
			more, err := fn(i, b.hash(j), stored)
			if err == ErrDamaged {
				return s.damagedBlock(i)
			}
			if err != nil || !more {
				return err
			}
		}
	}
	return nil
}
