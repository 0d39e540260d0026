package bloom

import (
	"encoding/binary"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
)

// Unite adds the keys of a part that [WritePart] wrote for the same family and
// number of bitmaps: it sets the bits that are set there. The filter is then, to
// the bit, that of the keys of both.
//
// On an error it has some bits more than before: there is still no false
// negative, but the filter is better made anew. What is damaged is noticed, at
// the latest at the end; nothing in a part makes Unite panic, or take more memory
// than a few MiB.
func (s *Sharded) Unite(r io.Reader, part Part) error {
	p, err := openPart(r, part, partSparse, partDense)
	if err != nil {
		return err
	}
	if p.size != s.M() {
		return p.wrong("the filter has another size")
	}
	if p.encoding == partDense {
		err = s.uniteDense(p)
	} else {
		err = s.uniteSparse(p)
	}
	if err != nil {
		return err
	}
	return p.close()
}

// densePieces is how many pieces of bitmaps may be read ahead of their setting.
const densePieces = 8

// uniteDense reads bitmaps. One goroutine reads and sums up, since the checksum is
// of all bytes in their order, and the others set and count bits, of which each piece
// has its own. What goes into an empty bitmap is read where it belongs: to set bits in
// memory that was never written costs two page faults a page, and while goroutines on
// two cores do so, each of them interrupts the other core.
func (s *Sharded) uniteDense(p *partReader) error {
	if p.length != s.Bytes() {
		return p.wrong("the bitmaps have another length")
	}
	pieces := int(min(densePieces, p.length/partPiece+1))
	free, full := make(chan []byte, pieces), make(chan densePiece, pieces)
	for range pieces {
		free <- make([]byte, partPiece)
	}
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), pieces) {
		workers.Go(func() {
			for piece := range full {
				if piece.into.empty {
					piece.into.added.Add(countBits(piece.text))
					continue
				}
				piece.into.added.Add(orInto(piece.into.filter.bits[piece.at:], piece.text))
				free <- piece.text[:partPiece]
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

// densePiece is text that stands for the bytes of a bitmap from at on, or is these bytes
// where that was empty.
type densePiece struct {
	into *unitedFilter
	at   int
	text []byte
}

// unitedFilter is a bitmap, and how many bits more are set in it.
type unitedFilter struct {
	filter *Filter
	empty  bool // before
	added  atomic.Uint64
}

// readDense reads the pieces of all bitmaps.
func readDense(p *partReader, shards []unitedFilter, free <-chan []byte, full chan<- densePiece) error {
	for i := range shards {
		f := &shards[i]
		for at := 0; at < len(f.filter.bits); {
			n := min(partPiece, len(f.filter.bits)-at)
			piece := f.filter.bits[at : at+n]
			if !f.empty {
				piece = (<-free)[:n]
			}
			if _, err := io.ReadFull(p, piece); err != nil {
				if f.empty {
					clear(piece)
				}
				return cutShort(err)
			}
			full <- densePiece{f, at, piece}
			at += n
		}
	}
	return nil
}

// uniteSparse reads gaps.
func (s *Sharded) uniteSparse(p *partReader) error {
	var (
		shard = 0
		f     = s.shards[0]
		next  = uint64(0) // the bit behind the last one, in the shard
		kept  []byte
	)
	for done := uint64(0); done < p.count; {
		piece, err := p.next(kept)
		if err != nil {
			return err
		}
		last := p.left == 0
		for done < p.count && (last || len(piece) >= binary.MaxVarintLen64) {
			gap, n := binary.Uvarint(piece)
			if n <= 0 {
				return p.wrong("a position is cut short")
			}
			piece = piece[n:]
			for f.m-next <= gap {
				gap -= f.m - next
				next = 0
				if shard++; shard == len(s.shards) {
					return p.wrong("a position is beyond the last")
				}
				f = s.shards[shard]
			}
			next += gap + 1
			f.setBit(next - 1)
			done++
		}
		kept = piece
	}
	if len(kept) > 0 || p.left > 0 {
		return p.wrong("there are more positions than was said")
	}
	return nil
}

// setBit sets bit i, which is below m.
func (f *Filter) setBit(i uint64) {
	b := f.bits[i>>3]
	f.setBits += uint64(^b >> (i & 7) & 1)
	f.bits[i>>3] = b | 1<<(i&7)
}
