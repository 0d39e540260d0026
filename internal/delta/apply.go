package delta

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Apply writes the file that a delta makes of the old one. It reads the old file twice:
// to check that the delta is for it, and for what is copied. On [ErrBase] nothing was
// written. After any other error the caller has to discard what was written. It never
// writes more than the header says, nor more than max.
func Apply(w io.Writer, old io.ReadSeeker, delta io.Reader, max int64) error {
	in := &noted{r: delta}
	h, err := ReadHeader(in)
	if err != nil {
		return err
	}
	if h.NewSize > max {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, h.NewSize, max)
	}
	switch size, sum, err := digest(old); {
	case err != nil:
		return err
	case size != h.OldSize || sum != h.OldSHA256:
		return ErrBase
	}
	ops, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return err
	}
	defer ops.Close()
	hash := sha256.New()
	makes := &writing{old: newView(old, h.OldSize), w: io.MultiWriter(w, hash)}
	if err := newApplier(h, in, ops, makes).run(); err != nil {
		return err
	}
	if [sha256.Size]byte(hash.Sum(nil)) != h.NewSHA256 {
		return fmt.Errorf("%w: it made another file than it should", ErrDamaged)
	}
	return nil
}

// digest returns the size and SHA-256 of a file.
func digest(file io.ReadSeeker) (size int64, sum [sha256.Size]byte, err error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return 0, sum, err
	}
	hash := sha256.New()
	size, err = io.Copy(hash, file)
	return size, [sha256.Size]byte(hash.Sum(nil)), err
}

// maker makes a file of operations.
type maker interface {
	insert(b []byte) error
	copy(from, n int64) error // bytes that the old file has
}

// writing is a maker that writes the file.
type writing struct {
	old *view
	w   io.Writer
}

func (m *writing) insert(b []byte) error {
	_, err := m.w.Write(b)
	return err
}

func (m *writing) copy(from, n int64) error { return m.old.copyTo(m.w, from, n) }

// applier reads the operations of a delta, checks them, and has them carried out.
type applier struct {
	h     Header
	in    *noted
	ops   *bufio.Reader
	makes maker
	chunk []byte

	done int64 // bytes that were made
	end  int64 // where the last copy ended in old
}

func newApplier(h Header, in *noted, ops io.Reader, makes maker) *applier {
	return &applier{h: h, in: in, ops: bufio.NewReader(ops), makes: makes, chunk: make([]byte, 32<<10)}
}

func (a *applier) run() error {
	for a.done < a.h.NewSize {
		before := a.done
		if err := a.insert(); err != nil {
			return err
		}
		if err := a.copy(); err != nil {
			return err
		}
		if made := a.done - before; a.done < a.h.NewSize && made < minOp {
			return fmt.Errorf("%w: an operation makes %d bytes", ErrDamaged, made)
		}
	}
	switch _, err := a.ops.ReadByte(); {
	case err == nil:
		return fmt.Errorf("%w: there is more after its end", ErrDamaged)
	case err != io.EOF:
		return a.damaged(err)
	}
	return nil
}

func (a *applier) insert() error {
	n, err := a.length()
	for n > 0 && err == nil {
		part := a.chunk[:min(n, int64(len(a.chunk)))]
		if _, err := io.ReadFull(a.ops, part); err != nil {
			return a.damaged(err)
		}
		n -= int64(len(part))
		err = a.makes.insert(part)
	}
	return err
}

func (a *applier) copy() error {
	n, err := a.length()
	if err != nil || n == 0 {
		return err
	}
	seek, err := binary.ReadVarint(a.ops)
	if err != nil {
		return a.damaged(err)
	}
	from := a.end + seek
	if from < 0 || from > a.h.OldSize-n {
		return fmt.Errorf("%w: it copies %d bytes from %d of %d", ErrDamaged, n, from, a.h.OldSize)
	}
	a.end = from + n
	return a.makes.copy(from, n)
}

// length reads the length of an insertion or copy, and counts it.
func (a *applier) length() (int64, error) {
	n, err := binary.ReadUvarint(a.ops)
	if err != nil {
		return 0, a.damaged(err)
	}
	if n > uint64(a.h.NewSize-a.done) {
		return 0, fmt.Errorf("%w: it makes more than the %d bytes that it announces", ErrDamaged, a.h.NewSize)
	}
	a.done += int64(n)
	return int64(n), nil
}

// damaged returns the error of reading the operations: that of the delta's reader if it
// has failed, otherwise an ErrDamaged.
func (a *applier) damaged(err error) error {
	if a.in.err != nil {
		return a.in.err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// noted keeps the error of a reader, other than its end.
type noted struct {
	r   io.Reader
	err error
}

func (n *noted) Read(p []byte) (int, error) {
	got, err := n.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		n.err = err
	}
	return got, err
}
