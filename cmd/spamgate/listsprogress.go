package main

import (
	"context"
	"io"
	"os"

	"spamgate/blocklist"
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

// readingProgress is a progress bar for each list that a Store reads.
type readingProgress struct {
	w   io.Writer
	bar *byteProgress
}

// follow is for [blocklist.Config].
func (p *readingProgress) follow(path string, from io.Reader) io.Reader {
	p.finish()
	p.bar = newByteProgress(p.w, path)
	return p.bar.reader(from, path)
}

func (p *readingProgress) finish() {
	if p.bar != nil {
		p.bar.finish()
	}
}

// buildWithBar is [blocklist.Build] with a progress bar on w.
func buildWithBar(ctx context.Context, c blocklist.Config, w io.Writer) (*blocklist.Set, []blocklist.ListStats, error) {
	p := readingProgress{w: w}
	defer p.finish()
	c.Follow = p.follow
	return blocklist.Build(ctx, c)
}

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
