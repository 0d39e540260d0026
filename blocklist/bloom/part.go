package bloom

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/minio/highwayhash"
)

// Why stored bits are of no use. Use errors.Is.
var (
	ErrDamaged = errors.New("damaged")
	ErrOther   = errors.New("of another filter, other keys or another version of the program")
)

// Part says what a stored part is of: what one list, of several whose filters
// are united, adds to the filter. A part is
//
//	offset  bytes
//	0       8      "SPAMBITS"
//	8       4      version of the format, 1
//	12      4      encoding of the body, see partSparse and the others
//	16      32     ID
//	48      8      Room
//	56      8      size: the bits of the filter, or the keys of a fuse filter
//	64      8      count: the positions in a sparse body, else 0
//	72      8      length of the body
//	80      8      checksum of what is before it
//	88             body
//	+0      8      checksum of the body
//
// in little-endian numbers. Checksums are HighwayHash-64 under a key of zeros:
// they are against damage, and not against somebody who may write the file. A
// part is read from its beginning to its end, and its body compared with the
// checksum each time, so that a file may be changed or cut at any time.
type Part struct {
	// ID says which keys the part is of, and of what filter; it is the caller's.
	// Parts of another ID are refused with [ErrOther].
	ID [32]byte

	// Room is how many keys the filter is made for. It is the caller's too, and
	// nothing here depends on it.
	Room uint64
}

const (
	partMagic      = "SPAMBITS"
	partVersion    = 1
	partHeaderSize = 88
	checksumSize   = 8
)

// Encodings of a part's body.
const (
	partSparse = 1 // the gaps before the set bits, as varints
	partDense  = 2 // the bitmaps
	partFuse   = 3 // binary fuse filters
)

// partHeader is what stands before a part's body.
type partHeader struct {
	Part
	encoding uint32
	size     uint64
	count    uint64
	length   uint64
}

var checksumKey [highwayhash.Size]byte

func newChecksum() hash.Hash64 {
	h, _ := highwayhash.New64(checksumKey[:]) // fails for a key of another length
	return h
}

// encode is the header's bytes.
func (h *partHeader) encode() []byte {
	b := make([]byte, 0, partHeaderSize)
	b = append(b, partMagic...)
	b = binary.LittleEndian.AppendUint32(b, partVersion)
	b = binary.LittleEndian.AppendUint32(b, h.encoding)
	b = append(b, h.ID[:]...)
	for _, n := range []uint64{h.Room, h.size, h.count, h.length} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return binary.LittleEndian.AppendUint64(b, highwayhash.Sum64(b, checksumKey[:]))
}

// readPartHeader reads a header, of whatever ID.
func readPartHeader(r io.Reader) (partHeader, error) {
	b := make([]byte, partHeaderSize)
	if _, err := io.ReadFull(r, b); err != nil {
		return partHeader{}, cutShort(err)
	}
	if string(b[:8]) != partMagic {
		return partHeader{}, fmt.Errorf("filter bits: %w: no such file begins so", ErrDamaged)
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != partVersion {
		return partHeader{}, fmt.Errorf("filter bits: %w: format version %d", ErrOther, v)
	}
	sum := b[partHeaderSize-checksumSize:]
	if binary.LittleEndian.Uint64(sum) != highwayhash.Sum64(b[:partHeaderSize-checksumSize], checksumKey[:]) {
		return partHeader{}, fmt.Errorf("filter bits: %w: the header's checksum is wrong", ErrDamaged)
	}
	h := partHeader{encoding: binary.LittleEndian.Uint32(b[12:])}
	copy(h.ID[:], b[16:])
	for i, n := range []*uint64{&h.Room, &h.size, &h.count, &h.length} {
		*n = binary.LittleEndian.Uint64(b[48+8*i:])
	}
	return h, nil
}

// ReadPart reads what a stored part is of from its header, and nothing else.
func ReadPart(r io.Reader) (Part, error) {
	h, err := readPartHeader(r)
	return h.Part, err
}

// cutShort is the error of reading a part that ends too early, or cannot be read.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("filter bits: %w: cut short", ErrDamaged)
	}
	return fmt.Errorf("reading filter bits: %w", err)
}

// partWriter writes a part.
type partWriter struct {
	w    io.Writer
	sum  hash.Hash64
	left uint64 // of the body
	err  error  // the first; nothing is written after it
}

func newPartWriter(w io.Writer, h partHeader) *partWriter {
	p := &partWriter{w: w, sum: newChecksum(), left: h.length}
	_, p.err = w.Write(h.encode())
	return p
}

// write writes some of the body.
func (p *partWriter) write(b []byte) {
	if p.err != nil {
		return
	}
	p.left -= uint64(len(b))
	p.sum.Write(b) // never fails
	_, p.err = p.w.Write(b)
}

// close writes the checksum.
func (p *partWriter) close() error {
	if p.err == nil && p.left != 0 {
		p.err = errors.New("the body is not as long as was said")
	}
	if p.err == nil {
		_, p.err = p.w.Write(binary.LittleEndian.AppendUint64(nil, p.sum.Sum64()))
	}
	if p.err != nil {
		return fmt.Errorf("writing filter bits: %w", p.err)
	}
	return nil
}

// partReader reads a part's body in pieces, and compares the checksum at its end.
type partReader struct {
	partHeader
	r    io.Reader
	sum  hash.Hash64
	left uint64
	room []byte
}

// partPiece is how much of a body is read at once.
const partPiece = 256 << 10

// openPart reads the header of a part, which has to be of the ID, and one of the
// encodings.
func openPart(r io.Reader, want Part, encodings ...uint32) (*partReader, error) {
	h, err := readPartHeader(r)
	if err != nil {
		return nil, err
	}
	if h.ID != want.ID {
		return nil, fmt.Errorf("filter bits: %w", ErrOther)
	}
	for _, e := range encodings {
		if h.encoding == e {
			return &partReader{partHeader: h, r: r, sum: newChecksum(), left: h.length, room: make([]byte, partPiece)}, nil
		}
	}
	return nil, fmt.Errorf("filter bits: %w: unknown encoding %d", ErrDamaged, h.encoding)
}

// next is the next piece of the body, valid until the next call, and nil after
// the last. Kept bytes of the piece before come first.
func (p *partReader) next(kept []byte) ([]byte, error) {
	n := copy(p.room, kept)
	more := min(uint64(len(p.room)-n), p.left)
	if more == 0 {
		return p.room[:n], nil
	}
	piece := p.room[n:][:more]
	if _, err := io.ReadFull(p.r, piece); err != nil {
		return nil, cutShort(err)
	}
	p.sum.Write(piece)
	p.left -= more
	return p.room[:n+int(more)], nil
}

// Read reads from the body alone, for [io.ReadFull].
func (p *partReader) Read(b []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	n, err := p.r.Read(b[:min(uint64(len(b)), p.left)])
	p.sum.Write(b[:n])
	p.left -= uint64(n)
	return n, err
}

// close compares the checksum, after the whole body.
func (p *partReader) close() error {
	if p.left != 0 {
		return p.wrong("the body is longer than what is in it")
	}
	sum := make([]byte, checksumSize)
	if _, err := io.ReadFull(p.r, sum); err != nil {
		return cutShort(err)
	}
	if binary.LittleEndian.Uint64(sum) != p.sum.Sum64() {
		return p.wrong("the checksum is wrong")
	}
	return nil
}

func (p *partReader) wrong(what string) error {
	return fmt.Errorf("filter bits: %w: %s", ErrDamaged, what)
}
