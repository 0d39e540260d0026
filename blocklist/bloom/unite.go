package bloom

import (
	"encoding/binary"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
)

// Unite adds the keys of stored bits: it sets the bits that are set there. The
// filter is then, to the bit, that of the keys of both. Bits of another family, k,
// m or number of shards are refused with [ErrOther].
//
// After an error some of the stored bits may be set: there is still no false
// negative, but the filter should be made anew. Unite notices any damage, at the
// latest at the end. No input makes it panic or take more than a few MiB of memory.
func (s *Sharded) Unite(r io.Reader, want ListBits) error {
	p, err := openBits(r, want, sparseBits, denseBits)
	if err != nil {
		return err
	}
	own := s.header(want)
	if err := p.checkFilter(&own); err != nil {
		return err
	}
	if p.Encoding == denseBits {
		err = s.uniteDense(p)
	} else {
		err = s.uniteSparse(p)
	}
	if err != nil {
		return err
	}
	return p.close()
}

// densePieces is the number of pieces of bitmaps that are read ahead.
const densePieces = 8

// uniteDense reads bitmaps. One goroutine reads and computes the checksum, which
// needs the bytes in order; the others set and count the bits of a piece each. An
// empty bitmap is read in place: setting bits in memory that was never written
// costs two page faults a page, and goroutines on two cores that do so interrupt
// each other.
func (s *Sharded) uniteDense(p *bitsReader) error {
	if p.Length != s.Bytes() {
		return damaged("the bitmaps have another length")
	}
	pieces := int(min(densePieces, p.Length/pieceSize+1))
	free, full := make(chan []byte, pieces), make(chan densePiece, pieces)
	for range pieces {
		free <- make([]byte, pieceSize)
	}
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), pieces) {
		workers.Go(func() {
			for piece := range full {
				if piece.into.empty {
					piece.into.added.Add(countBits(piece.text))
					continue
				}
				piece.into.added.Add(orInto(piece.into.filter.bits[piece.pos:], piece.text))
				free <- piece.text[:pieceSize]
			}
		})
	}
	shards := make([]unitedFilter, len(s.shards))
	for i, f := range s.shards {
		shards[i].filter, shards[i].empty = f, f.setBits == 0
	}
	err := readDense(p, shards, free, full)
	close(full)
	workers.Wait()
	for i := range shards {
		shards[i].filter.setBits += shards[i].added.Load()
	}
	return err
}

// densePiece holds bytes for a bitmap from offset at on. In a bitmap that was empty
// it is those bytes themselves.
type densePiece struct {
	into *unitedFilter
	pos  int
	text []byte
}

// unitedFilter is a bitmap, and the number of bits that were added to it.
type unitedFilter struct {
	filter *Filter
	empty  bool // before the bits were added
	added  atomic.Uint64
}

// readDense reads the pieces of all bitmaps.
func readDense(p *bitsReader, shards []unitedFilter, free <-chan []byte, full chan<- densePiece) error {
	for i := range shards {
		f := &shards[i]
		for pos := 0; pos < len(f.filter.bits); {
			n := min(pieceSize, len(f.filter.bits)-pos)
			piece := f.filter.bits[pos : pos+n]
			if !f.empty {
				piece = (<-free)[:n]
			}
			if _, err := io.ReadFull(p, piece); err != nil {
				if f.empty {
					clear(piece)
				}
				return truncated(err)
			}
			full <- densePiece{f, pos, piece}
			pos += n
		}
	}
	return nil
}

// uniteSparse reads the gaps between set bits.
func (s *Sharded) uniteSparse(p *bitsReader) error {
	var (
		shard  = 0
		f      = s.shards[0]
		next   = uint64(0) // the bit after the last one, in the shard
		unused []byte
	)
	for done := uint64(0); done < p.Count; {
		piece, err := p.next(unused)
		if err != nil {
			return err
		}
		last := p.left == 0
		for done < p.Count && (last || len(piece) >= binary.MaxVarintLen64) {
			gap, n := binary.Uvarint(piece)
			if n <= 0 {
				return damaged("a position is cut short")
			}
			piece = piece[n:]
			for f.m-next <= gap {
				gap -= f.m - next
				next = 0
				if shard++; shard == len(s.shards) {
					return damaged("a position is beyond the last")
				}
				f = s.shards[shard]
			}
			next += gap + 1
			f.setBit(next - 1)
			done++
		}
		unused = piece
	}
	if len(unused) > 0 || p.left > 0 {
		return damaged("there are more positions than the header says")
	}
	return nil
}

// setBit sets bit i, which is below m.
func (f *Filter) setBit(i uint64) {
	b := f.bits[i>>3]
	f.setBits += uint64(^b >> (i & 7) & 1)
	f.bits[i>>3] = b | 1<<(i&7)
}
