package main

import (
	"io"
	"os"
)

// showFrom is how many bytes there have to be for a progress bar: fewer are read
// before one can be looked at.
const showFrom = 16 << 20

// byteProgress is a progress bar over files that are read.
type byteProgress struct {
	bar         progress
	total, done int64
	shown       int64
}

// newByteProgress makes a bar on w for the files.
func newByteProgress(w io.Writer, files ...string) *byteProgress {
	p := &byteProgress{}
	for _, path := range files {
		if info, err := os.Stat(path); err == nil {
			p.total += info.Size()
		}
	}
	if p.total >= showFrom {
		p.bar = newProgress(w)
	}
	return p
}

// reader has the bar follow what is read.
func (p *byteProgress) reader(r io.Reader, path string) io.Reader {
	return &progressReader{r, p, "reading " + shorten(path)}
}

func (p *byteProgress) finish() { p.bar.finish() }

type progressReader struct {
	io.Reader
	p    *byteProgress
	what string
}

func (r *progressReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.p.done += int64(n)
	if r.p.done-r.p.shown >= 1<<20 {
		r.p.shown = r.p.done
		r.p.bar.show(min(1, float64(r.p.done)/float64(r.p.total)), r.what)
	}
	return n, err
}
