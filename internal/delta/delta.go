// Package delta writes and applies the differences of text files.
//
// A delta makes one version of a file of another one. It consists of a header and of
// operations that copy bytes of the old file and insert new ones. [Write] finds what both
// files share by lines, wherever it is in them. It works with any file, but for a packed
// one the delta is about as long as the file.
//
// The format is the line "spamgate-delta 1", the header (the size as 8 bytes, most
// significant first, and the SHA-256 of the old file, then those of the new one), and one
// Zstandard frame with the operations until they have made the new file. An operation is
//
//	uvarint  number of inserted bytes
//	bytes    the inserted bytes
//	uvarint  number of copied bytes
//	varint   where they start in the old file, counted from the end of the last copy;
//	         only if there are any
//
// and makes at least 16 bytes, except for the last one.
package delta

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// What can be wrong with a delta.
var (
	// ErrBase means that the old file is not the one that the delta was made for.
	ErrBase = errors.New("delta: it is for another version of the file")

	// ErrDamaged means that the delta is malformed, or that it did not make the file that
	// its header names.
	ErrDamaged = errors.New("delta: it is damaged")

	// ErrTooLarge means that the new file would be larger than allowed.
	ErrTooLarge = errors.New("delta: the new file would be too large")
)

const (
	magic      = "spamgate-delta 1\n"
	headerSize = len(magic) + 2*(8+sha256.Size)

	// minOp is the number of bytes that an operation has to make. It bounds the time
	// that a hostile delta takes.
	minOp = 16

	// window is the size of the compressor's window, which both sides keep in memory.
	window = 1 << 20
)

// Header says which file a delta is for, and which one it makes.
type Header struct {
	OldSize, NewSize     int64
	OldSHA256, NewSHA256 [sha256.Size]byte
}

// ReadHeader reads the header of a delta, and nothing after it.
func ReadHeader(delta io.Reader) (Header, error) {
	var text [headerSize]byte
	switch _, err := io.ReadFull(delta, text[:]); {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return Header{}, fmt.Errorf("%w: it ends in its header", ErrDamaged)
	case err != nil:
		return Header{}, err
	}
	if string(text[:len(magic)]) != magic {
		return Header{}, fmt.Errorf("%w: it does not start as one", ErrDamaged)
	}
	var h Header
	rest := text[len(magic):]
	h.OldSize, rest = int64(binary.BigEndian.Uint64(rest)), rest[8:]
	rest = rest[copy(h.OldSHA256[:], rest):]
	h.NewSize, rest = int64(binary.BigEndian.Uint64(rest)), rest[8:]
	copy(h.NewSHA256[:], rest)
	if h.OldSize < 0 || h.NewSize < 0 {
		return Header{}, fmt.Errorf("%w: a negative size", ErrDamaged)
	}
	return h, nil
}

func (h Header) append(b []byte) []byte {
	b = append(b, magic...)
	b = binary.BigEndian.AppendUint64(b, uint64(h.OldSize))
	b = append(b, h.OldSHA256[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(h.NewSize))
	return append(b, h.NewSHA256[:]...)
}
