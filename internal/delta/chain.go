package delta

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/klauspost/compress/zstd"
)

// ErrLong means that a [Chain] would need too much memory or scratch space with another delta.
// Write its file, and go on from that.
var ErrLong = errors.New("delta: the chain is too long")

// maxPieces bounds the memory of a chain: while a delta is added, to 64 MB.
const maxPieces = 2 << 20

// Chain is a file that several deltas make of a base, one after the other, without the files
// in between: these would have to be written and read for each delta.
type Chain struct {
	base, size int64 // bytes of the base, and of the file
	sum        [sha256.Size]byte
	pieces     []piece

	scratch io.ReadWriteSeeker // gets what is inserted
	used    int64              // of scratch
}

// piece is a part of a chain's file, up to the next piece.
type piece struct {
	start int64 // in the file
	from  int64 // where it is in the base, or ^from in scratch
}

// NewChain returns a chain without deltas. Scratch is an empty file, which the chain uses until
// its end.
func NewChain(size int64, sum [sha256.Size]byte, scratch io.ReadWriteSeeker) *Chain {
	c := &Chain{base: size, size: size, sum: sum, scratch: scratch}
	if size > 0 {
		c.pieces = []piece{{}}
	}
	return c
}

// Add adds a delta for the chain's file. It takes what the delta says about its files for
// true, except for sizes: the caller has to check the digest of the result. The file has at
// most max bytes, and scratch twice as many. After an error the chain is as before.
func (c *Chain) Add(delta io.Reader, max int64) error {
	in := &noted{r: delta}
	h, err := ReadHeader(in)
	switch {
	case err != nil:
		return err
	case h.NewSize > max:
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, h.NewSize, max)
	case h.OldSize != c.size || h.OldSHA256 != c.sum:
		return ErrBase
	}
	ops, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return err
	}
	defer ops.Close()
	if _, err := c.scratch.Seek(c.used, io.SeekStart); err != nil {
		return err
	}
	next := &extending{chain: c, w: bufio.NewWriterSize(c.scratch, maxAt), used: c.used, most: 2 * max}
	if err := newApplier(h, in, ops, next).run(); err != nil {
		return err
	}
	if err := next.w.Flush(); err != nil {
		return err
	}
	c.pieces, c.size, c.sum, c.used = next.pieces, h.NewSize, h.NewSHA256, next.used
	return nil
}

// Write writes the chain's file. Base is what [NewChain] got the size and digest of.
func (c *Chain) Write(w io.Writer, base io.ReadSeeker) error {
	out := bufio.NewWriterSize(w, maxFill)
	old, inserted := newView(base, c.base), newView(c.scratch, c.used)
	for i, p := range c.pieces {
		v, from := old, p.from
		if from < 0 {
			v, from = inserted, ^from
		}
		if err := v.copyTo(out, from, c.end(i)-p.start); err != nil {
			return err
		}
	}
	return out.Flush()
}

// end returns where a piece ends in the file.
func (c *Chain) end(i int) int64 {
	if i+1 < len(c.pieces) {
		return c.pieces[i+1].start
	}
	return c.size
}

// extending is a maker of the next file of a chain.
type extending struct {
	chain  *Chain
	pieces []piece
	size   int64

	w    *bufio.Writer // to scratch
	used int64         // of scratch
	most int64         // that it may be
	last int           // the piece of the last copy
}

func (e *extending) insert(b []byte) error {
	if e.used+int64(len(b)) > e.most {
		return ErrLong
	}
	if _, err := e.w.Write(b); err != nil {
		return err
	}
	from := ^e.used
	e.used += int64(len(b))
	return e.add(from, int64(len(b)))
}

func (e *extending) copy(from, n int64) error {
	c := e.chain
	i := e.last
	if i >= len(c.pieces) || from < c.pieces[i].start || from >= c.end(i) {
		i = sort.Search(len(c.pieces), func(i int) bool { return c.end(i) > from })
	}
	for ; n > 0; i++ {
		p := c.pieces[i]
		part := min(n, c.end(i)-from)
		at := p.from + (from - p.start)
		if p.from < 0 {
			at = p.from - (from - p.start)
		}
		if err := e.add(at, part); err != nil {
			return err
		}
		e.last, from, n = i, from+part, n-part
	}
	return nil
}

// add adds n bytes from a place of the base or of scratch.
func (e *extending) add(from, n int64) error {
	if k := len(e.pieces); k == 0 || !e.pieces[k-1].reaches(e.size, from) {
		if k == maxPieces {
			return ErrLong
		}
		e.pieces = append(e.pieces, piece{e.size, from})
	}
	e.size += n
	return nil
}

// reaches reports whether a piece that ends at end in its file goes on at from.
func (p piece) reaches(end, from int64) bool {
	if p.from < 0 {
		return from == p.from-(end-p.start)
	}
	return from == p.from+(end-p.start)
}
