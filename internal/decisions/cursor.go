package decisions

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
)

// place is a place in the order of the history: by time, then by file, then by row.
type place struct {
	offset int64 // nanoseconds
	file   int64 // the file's number
	n      int64 // the row's number in the file
}

// before reports whether p is older than other.
func (p place) before(other place) bool {
	if p.offset != other.offset {
		return p.offset < other.offset
	}
	if p.file != other.file {
		return p.file < other.file
	}
	return p.n < other.n
}

// ErrCursor says that a Cursor did not come from a Page.
var ErrCursor = errors.New("not a place in the history: begin with the newest decisions")

const cursorVersion = 1

func (p place) cursor() Cursor {
	b := []byte{cursorVersion}
	for _, v := range []int64{p.offset, p.file, p.n} {
		b = binary.AppendUvarint(b, uint64(v))
	}
	return Cursor(base64.RawURLEncoding.EncodeToString(b))
}

// Check returns ErrCursor unless the Cursor is empty or names a place.
func (c Cursor) Check() error {
	if c == "" {
		return nil
	}
	_, err := c.place()
	return err
}

// place returns the place of a Cursor that is not empty.
func (c Cursor) place() (place, error) {
	if len(c) > 64 {
		return place{}, ErrCursor
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(string(c))
	if err != nil || len(b) == 0 || b[0] != cursorVersion {
		return place{}, ErrCursor
	}
	b = b[1:]
	var values [3]int64
	for i := range values {
		v, n := binary.Uvarint(b)
		if n <= 0 || int64(v) < 0 {
			return place{}, ErrCursor
		}
		values[i], b = int64(v), b[n:]
	}
	p := place{values[0], values[1], values[2]}
	if len(b) != 0 || p.cursor() != c {
		return place{}, ErrCursor
	}
	return p, nil
}
