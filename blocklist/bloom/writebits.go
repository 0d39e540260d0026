package bloom

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"

	"spamgate/hashfamily"
)

// WriteListBits writes to w the bits that n keys set in a [Sharded] filter of so
// many bitmaps over the family: the positions of the bits, or the bitmaps where
// they are shorter. It needs the memory of one such filter meanwhile, and of some
// more for one bitmap and many keys (see [Sharded.Fill]).
func WriteListBits(ctx context.Context, w io.Writer, bits ListBits, family hashfamily.Family, shards int, n uint64, scan Scan) error {
	var releases []func()
	defer func() {
		for _, release := range releases {
			release()
		}
	}()
	s, err := newSharded(family, shards, func(size int) []byte {
		b, release := newScratch(size)
		releases = append(releases, release)
		return b
	})
	if err != nil {
		return err
	}
	if err := s.Fill(ctx, n, scan); err != nil {
		return fmt.Errorf("filter bits: %w", err)
	}
	return s.WriteBits(w, bits)
}

// WriteBits writes the filter's bits, for [Sharded.Unite] to read.
func (s *Sharded) WriteBits(w io.Writer, listBits ListBits) error {
	h := s.header(listBits)
	h.Encoding, h.Length = denseBits, s.Bytes()
	set := s.SetBits()
	if set < h.Length { // a position takes at least one byte
		gaps := uint64(0)
		s.gaps(func(gap uint64) { gaps += uint64(bits.Len64(gap|1)+6) / 7 })
		if gaps < h.Length {
			h.Encoding, h.Count, h.Length = sparseBits, set, gaps
		}
	}
	p := newBitsWriter(w, h)
	if h.Encoding == sparseBits {
		s.writeSparse(p)
	} else {
		for _, f := range s.shards {
			p.write(f.bits)
		}
	}
	return p.close()
}

// writeSparse writes the gaps between the set bits.
func (s *Sharded) writeSparse(p *bitsWriter) {
	buf := make([]byte, 0, pieceSize)
	s.gaps(func(gap uint64) {
		if cap(buf)-len(buf) < binary.MaxVarintLen64 {
			p.write(buf)
			buf = buf[:0]
		}
		buf = binary.AppendUvarint(buf, gap)
	})
	p.write(buf)
}

// blank holds the bytes of many clear bits, which are compared at once: the bitmap
// of a short list has little else.
var blank [1 << 10]byte

// gaps yields for each set bit, in ascending order, the number of clear bits
// between it and the one before. Bits are numbered through all shards.
func (s *Sharded) gaps(yield func(gap uint64)) {
	next := uint64(0) // the bit after the last set one
	for i, f := range s.shards {
		base := uint64(i) * f.m
		for pos := 0; pos < len(f.bits); pos += 8 {
			for len(f.bits)-pos > len(blank) && bytes.Equal(f.bits[pos:][:len(blank)], blank[:]) {
				pos += len(blank)
			}
			for w := word(f.bits[pos:]); w != 0; w &= w - 1 {
				bit := base + uint64(8*pos+bits.TrailingZeros64(w))
				yield(bit - next)
				next = bit + 1
			}
		}
	}
}

// word returns the first 64 bits of a bitmap.
func word(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.LittleEndian.Uint64(b)
	}
	w := uint64(0)
	for i, c := range b {
		w |= uint64(c) << (8 * i)
	}
	return w
}
