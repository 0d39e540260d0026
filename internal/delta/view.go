package delta

import (
	"fmt"
	"io"
)

const (
	// maxAt is the largest part of a file that a view gives at once.
	maxAt = 64 << 10

	minFill, maxFill = 4 << 10, 256 << 10
)

// view gives access to the parts of a file. Reads that follow each other take more and
// more of the file into the buffer; one elsewhere takes a little.
type view struct {
	file  io.ReadSeeker
	size  int64
	start int64 // of the buffer in the file
	buf   []byte
	fill  int // how much the last read took
}

func newView(file io.ReadSeeker, size int64) *view { return &view{file: file, size: size} }

// at returns at most n bytes of the file from an offset, fewer only at its end. They are
// valid until the next call. It takes n up to maxAt.
func (v *view) at(off int64, n int) ([]byte, error) {
	n = int(max(0, min(int64(n), v.size-off)))
	if off < v.start || off+int64(n) > v.start+int64(len(v.buf)) {
		if err := v.read(off, n); err != nil {
			return nil, err
		}
	}
	return v.buf[off-v.start:][:n], nil
}

// copyTo writes n bytes of the file from an offset.
func (v *view) copyTo(w io.Writer, from, n int64) error {
	for end := from + n; from < end; {
		part, err := v.at(from, int(min(end-from, maxAt)))
		if err != nil {
			return err
		}
		if _, err := w.Write(part); err != nil {
			return err
		}
		from += int64(len(part))
	}
	return nil
}

// read fills the buffer from an offset with at least n bytes.
func (v *view) read(off int64, n int) error {
	if v.start < off && off <= v.start+int64(len(v.buf)) {
		v.fill = min(2*v.fill, maxFill)
	} else {
		v.fill = minFill
	}
	size := int(min(int64(max(v.fill, n)), v.size-off))
	if cap(v.buf) < size {
		v.buf = make([]byte, size)
	}
	v.start, v.buf = off, v.buf[:0]
	if _, err := v.file.Seek(off, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.ReadFull(v.file, v.buf[:size]); err != nil {
		return fmt.Errorf("delta: a file changed while it was read: %w", err)
	}
	v.buf = v.buf[:size]
	return nil
}
