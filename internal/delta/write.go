package delta

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/xxh3"
)

const (
	maxLine  = 4 << 10  // a longer line counts as several
	ahead    = 128      // lines of the old file after a match that the next one may be
	maxAhead = 16 << 10 // and their bytes
)

// Stats describes a delta.
type Stats struct {
	Header
	Bytes    int64 // size of the delta
	Inserted int64 // bytes of the new file that are in the delta
}

// Write writes the delta that makes the new file of the old one. It reads both files
// twice, from their beginnings. Its memory is bounded, to about 20 MB.
func Write(w io.Writer, old, new io.ReadSeeker) (Stats, error) {
	d := &differ{known: newAnchors()}
	if err := d.learn(old); err != nil {
		return Stats{}, err
	}
	var err error
	if d.h.NewSize, d.h.NewSHA256, err = digest(new); err != nil {
		return Stats{}, err
	}
	if _, err := new.Seek(0, io.SeekStart); err != nil {
		return Stats{}, err
	}
	counted := &counter{w: w}
	if _, err := counted.Write(d.h.append(nil)); err != nil {
		return Stats{}, err
	}
	packed, err := zstd.NewWriter(counted, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window))
	if err != nil {
		return Stats{}, err
	}
	d.old, d.out.w = newView(old, d.h.OldSize), bufio.NewWriter(packed)
	if err := d.diff(io.LimitReader(new, d.h.NewSize)); err != nil {
		return Stats{}, err
	}
	if err := packed.Close(); err != nil {
		return Stats{}, err
	}
	return Stats{Header: d.h, Bytes: counted.n, Inserted: d.out.inserted}, nil
}

// differ finds what a new file shares with the old one.
//
// The next line of the new file is looked for in three places: after the last match, in
// the lines that follow there, and among the anchors. The first place makes most of the
// speed, the second finds small changes, and the third what is far away.
type differ struct {
	h     Header
	known *anchors
	old   *view
	out   ops

	next int64 // where the last match ended in old
	near []place
	at   int64 // the value of next that near is for
}

// place is a line in the old file.
type place struct {
	hash uint64
	off  int64
}

// learn reads the old file for its digest and anchors.
func (d *differ) learn(old io.ReadSeeker) error {
	if _, err := old.Seek(0, io.SeekStart); err != nil {
		return err
	}
	hash := sha256.New()
	err := eachLine(io.TeeReader(old, hash), func(line []byte) error {
		d.known.add(xxh3.Hash(line), d.h.OldSize)
		d.h.OldSize += int64(len(line))
		return nil
	})
	d.h.OldSHA256 = [sha256.Size]byte(hash.Sum(nil))
	return err
}

// diff writes the operations that make the new file.
func (d *differ) diff(new io.Reader) error {
	d.at = -1
	err := eachLine(new, func(line []byte) error {
		found, err := d.find(line)
		switch {
		case err != nil:
			return err
		case found < 0:
			return d.out.insert(line)
		}
		d.next = found + int64(len(line))
		return d.out.copy(line, found)
	})
	if err != nil {
		return err
	}
	return d.out.close()
}

// find returns where a line is in the old file, negative if that is not known.
func (d *differ) find(line []byte) (int64, error) {
	if is, err := d.has(d.next, line); is || err != nil {
		return d.next, err
	}
	hash := xxh3.Hash(line)
	if d.at != d.next {
		if err := d.lookAhead(); err != nil {
			return 0, err
		}
	}
	for _, p := range d.near {
		if p.hash != hash {
			continue
		}
		if is, err := d.has(p.off, line); is || err != nil {
			return p.off, err
		}
	}
	off, ok := d.known.find(hash)
	if !ok {
		return -1, nil
	}
	if is, err := d.has(off, line); !is || err != nil {
		return -1, err
	}
	shared, err := d.extend(off)
	if err != nil || shared+len(line) < minOp {
		return -1, err
	}
	return off, nil
}

// has reports whether a line is at an offset of the old file.
func (d *differ) has(off int64, line []byte) (bool, error) {
	there, err := d.old.at(off, len(line))
	return bytes.Equal(there, line), err
}

// lookAhead reads the lines after the last match.
func (d *differ) lookAhead() error {
	d.near, d.at = d.near[:0], d.next
	text, err := d.old.at(d.next, maxAhead)
	if err != nil {
		return err
	}
	off := d.next
	for len(text) > 0 && len(d.near) < ahead {
		end := bytes.IndexByte(text[:min(len(text), maxLine)], '\n') + 1
		if end == 0 {
			end = min(len(text), maxLine)
		}
		d.near = append(d.near, place{xxh3.Hash(text[:end]), off})
		text, off = text[end:], off+int64(end)
	}
	return nil
}

// extend makes a copy of what was inserted right before a line, as far as the old file has
// the same before the line's offset there. It returns the number of bytes.
func (d *differ) extend(off int64) (int, error) {
	if err := d.out.endCopy(); err != nil {
		return 0, err
	}
	text := d.out.inserting
	before, err := d.old.at(max(0, off-int64(len(text))), int(min(off, int64(len(text)))))
	if err != nil {
		return 0, err
	}
	n := 0
	for n < len(before) && before[len(before)-1-n] == text[len(text)-1-n] {
		n++
	}
	d.out.instead(n, off-int64(n))
	return n, nil
}

// eachLine calls f with each line of r, with its end. The line is valid until f returns.
func eachLine(r io.Reader, f func(line []byte) error) error {
	in := bufio.NewReaderSize(struct{ io.Reader }{bufio.NewReaderSize(r, 256<<10)}, maxLine)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil && err != io.EOF && err != bufio.ErrBufferFull {
			return err
		}
		if len(line) > 0 {
			if err := f(line); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

// counter counts the bytes that are written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
