package bloom

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"github.com/minio/highwayhash"
)

var checksumKey [highwayhash.Size]byte

func newChecksum() hash.Hash64 {
	h, _ := highwayhash.New64(checksumKey[:]) // fails only for a key of another length
	return h
}

// bitsWriter writes a header and a body.
type bitsWriter struct {
	w    io.Writer
	sum  hash.Hash64
	left uint64 // bytes of the body still to be written
	err  error  // the first error; nothing is written after it
}

func newBitsWriter(w io.Writer, h bitsHeader) *bitsWriter {
	b := &bitsWriter{w: w, sum: newChecksum(), left: h.Length}
	_, b.err = w.Write(h.encode())
	return b
}

// write writes a piece of the body.
func (w *bitsWriter) write(b []byte) {
	if w.err != nil {
		return
	}
	w.left -= uint64(len(b))
	w.sum.Write(b) // never fails
	_, w.err = w.w.Write(b)
}

// close writes the body's checksum.
func (w *bitsWriter) close() error {
	if w.err == nil && w.left != 0 {
		w.err = errors.New("the body has another length than the header says")
	}
	if w.err == nil {
		_, w.err = w.w.Write(binary.LittleEndian.AppendUint64(nil, w.sum.Sum64()))
	}
	if w.err != nil {
		return fmt.Errorf("writing filter bits: %w", w.err)
	}
	return nil
}

// bitsReader reads a body in pieces and compares its checksum at the end.
type bitsReader struct {
	bitsHeader
	r    io.Reader
	sum  hash.Hash64
	left uint64 // bytes of the body still to be read
	buf  []byte
}

// pieceSize is the number of bytes of a body that are read at once.
const pieceSize = 256 << 10

// openBits reads a header, which must have the ID and one of the encodings.
func openBits(r io.Reader, want ListBits, encodings ...uint32) (*bitsReader, error) {
	h, err := readBitsHeader(r)
	if err != nil {
		return nil, err
	}
	if h.ID != want.ID {
		return nil, fmt.Errorf("filter bits: %w", ErrOther)
	}
	if !slices.Contains(encodings, h.Encoding) {
		return nil, damaged(fmt.Sprintf("unknown encoding %d", h.Encoding))
	}
	return &bitsReader{bitsHeader: h, r: r, sum: newChecksum(), left: h.Length, buf: make([]byte, pieceSize)}, nil
}

// next returns the next piece of the body, which begins with the unused bytes of
// the piece before. It is valid until the next call.
func (r *bitsReader) next(unused []byte) ([]byte, error) {
	n := copy(r.buf, unused)
	m, err := io.ReadFull(r, r.buf[n:][:min(uint64(len(r.buf)-n), r.left)])
	if err != nil {
		return nil, truncated(err)
	}
	return r.buf[:n+m], nil
}

// Read reads from the body alone.
func (r *bitsReader) Read(b []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n, err := r.r.Read(b[:min(uint64(len(b)), r.left)])
	r.sum.Write(b[:n])
	r.left -= uint64(n)
	return n, err
}

// close compares the checksum. The whole body must have been read.
func (r *bitsReader) close() error {
	if r.left != 0 {
		return damaged("the body is longer than its content")
	}
	sum := make([]byte, checksumSize)
	if _, err := io.ReadFull(r.r, sum); err != nil {
		return truncated(err)
	}
	if binary.LittleEndian.Uint64(sum) != r.sum.Sum64() {
		return damaged("the checksum is wrong")
	}
	return nil
}
