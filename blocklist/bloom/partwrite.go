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

// WritePart writes to w what n keys set in a [Sharded] filter of so many bitmaps
// over the family: the positions of the bits while they are few, the bitmaps
// where that is shorter. It takes the memory of one such filter meanwhile, and of
// some more where there is one bitmap and many keys (see [Sharded.Fill]).
func WritePart(ctx context.Context, w io.Writer, part Part, family hashfamily.Family, shards int, n uint64, scan Scan) error {
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
	return s.WritePart(w, part)
}

// WritePart writes the bits that are set as a part.
func (s *Sharded) WritePart(w io.Writer, part Part) error {
	h := partHeader{Part: part, encoding: partDense, size: s.M(), length: s.Bytes()}
	set := s.SetBits()
	if set < h.length { // a position takes a byte at least
		gaps := uint64(0)
		s.gaps(func(gap uint64) { gaps += uint64(bits.Len64(gap|1)+6) / 7 })
		if gaps < h.length {
			h.encoding, h.count, h.length = partSparse, set, gaps
		}
	}
	p := newPartWriter(w, h)
	if h.encoding == partSparse {
		s.writeSparse(p)
	} else {
		for _, f := range s.shards {
			p.write(f.bits)
		}
	}
	return p.close()
}

// writeSparse writes the gaps.
func (s *Sharded) writeSparse(p *partWriter) {
	buf := make([]byte, 0, partPiece)
	s.gaps(func(gap uint64) {
		if cap(buf)-len(buf) < binary.MaxVarintLen64 {
			p.write(buf)
			buf = buf[:0]
		}
		buf = binary.AppendUvarint(buf, gap)
	})
	p.write(buf)
}

// blank are the bytes of many clear bits, which are compared at once: the bitmap
// of a short list has little else.
var blank [1 << 10]byte

// gaps gives for each set bit, in ascending order, how many clear bits stand
// between it and the one before. Bits are numbered through all shards.
func (s *Sharded) gaps(yield func(gap uint64)) {
	next := uint64(0) // the bit behind the last that was set
	for i, f := range s.shards {
		base := uint64(i) * f.m
		for at := 0; at < len(f.bits); at += 8 {
			for len(f.bits)-at > len(blank) && bytes.Equal(f.bits[at:][:len(blank)], blank[:]) {
				at += len(blank)
			}
			for w := word(f.bits[at:]); w != 0; w &= w - 1 {
				bit := base + uint64(8*at+bits.TrailingZeros64(w))
				yield(bit - next)
				next = bit + 1
			}
		}
	}
}

// word is the first 64 bits of a bitmap.
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
