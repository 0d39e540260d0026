package bloom

import (
	"encoding/binary"
	"io"
)

// Unite adds the keys of a part that [WritePart] wrote for the same family and
// number of bitmaps: it sets the bits that are set there. The filter is then, to
// the bit, that of the keys of both.
//
// On an error it has some bits more than before: there is still no false
// negative, but the filter is better made anew. What is damaged is noticed, at
// the latest at the end; nothing in a part makes Unite panic, or take more memory
// than a few hundred KiB.
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

// uniteDense reads bitmaps.
func (s *Sharded) uniteDense(p *partReader) error {
	if p.length != s.Bytes() {
		return p.wrong("the bitmaps have another length")
	}
	for _, f := range s.shards {
		for at := 0; at < len(f.bits); {
			piece := p.room[:min(len(p.room), len(f.bits)-at)]
			if _, err := io.ReadFull(p, piece); err != nil {
				return cutShort(err)
			}
			f.orAt(at, piece)
			at += len(piece)
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
