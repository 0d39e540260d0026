package rhsbl

import (
	"bytes"
	"context"
	"slices"

	"spamgate/blocklist/bloom"
	"spamgate/blocklist/segment"
)

// parents tells which names have entries below them: of sub.spam.example spam.example and
// example have. Lists are ordered by hashes, so they cannot tell. It is a fuse filter. Its
// false positives are names that exist without records, which does no harm.
type parents struct{ filter *bloom.Fuse }

// parentsWidth makes one name in 256 a false positive. Tests, which want none, set it.
var parentsWidth = 8

// newParents reads a list.
func newParents(ctx context.Context, seg *segment.Segment, key *segment.Key) (*parents, error) {
	var found distinct
	own := seg.Exceptions() > 0 // an exception may spare a name, but none below
	err := scan(ctx, seg, func(_ uint64, text []byte) {
		for name := parentOf(text, own); name != nil; name = parentOf(name, false) {
			found.add(key.Hash(name))
		}
	})
	if err != nil {
		return nil, err
	}
	hashes := found.sorted()
	filter, err := bloom.NewFuse(ctx, parentsWidth, uint64(len(hashes)), func(first, last uint64, yield func(uint64, []byte) bool) error {
		i, _ := slices.BinarySearch(hashes, first)
		for ; i < len(hashes) && hashes[i] <= last && yield(hashes[i], nil); i++ {
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &parents{filter}, nil
}

func (p *parents) mayContain(hash uint64) bool { return p.filter.MayContain(hash) }

// parentOf returns the name above an entry's domain, or with own the domain itself. It is
// nil if there is none, or if the entry is not of a domain.
func parentOf(entry []byte, own bool) []byte {
	switch pos := bytes.LastIndexByte(entry, '@'); {
	case pos > 0:
		return nil // an address or a local part
	case pos == 0:
		if entry = entry[1:]; bytes.HasPrefix(entry, []byte("[")) {
			return nil
		}
	}
	if own && !bytes.HasPrefix(entry, []byte("*.")) {
		return entry
	}
	_, rest, ok := bytes.Cut(entry, []byte("."))
	if !ok {
		return nil
	}
	return rest
}

// distinct collects hashes, each once. Most names have the parent of the one before: what
// was seen lately is skipped.
type distinct struct {
	hashes []uint64
	seen   [1 << 12]uint64
}

// minDistinct is how many are collected before the first time that they are sorted.
const minDistinct = 1 << 16

func (d *distinct) add(hash uint64) {
	if seen := &d.seen[hash%uint64(len(d.seen))]; *seen != hash {
		*seen = hash
	} else {
		return
	}
	if len(d.hashes) == cap(d.hashes) {
		d.grow()
	}
	d.hashes = append(d.hashes, hash)
}

// grow makes room: it drops what is there twice, and takes more memory if that is not much.
func (d *distinct) grow() {
	d.hashes = d.sorted()
	if len(d.hashes) >= cap(d.hashes)/2 {
		d.hashes = slices.Grow(d.hashes, max(minDistinct, cap(d.hashes)))
	}
}

// sorted returns the hashes in order.
func (d *distinct) sorted() []uint64 {
	slices.Sort(d.hashes)
	return slices.Compact(d.hashes)
}
