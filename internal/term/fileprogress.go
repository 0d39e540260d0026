package term

import (
	"io"
	"os"
)

// showFrom is how many bytes there have to be for a progress bar: fewer are read
// before one can be looked at.
const showFrom = 16 << 20

// FileProgress is a progress bar over files that are read.
type FileProgress struct {
	Bar         Progress
	total, done int64
	shown       int64
}

// NewFileProgress makes a bar on w for the files.
func NewFileProgress(w io.Writer, files ...string) *FileProgress {
	p := &FileProgress{}
	for _, path := range files {
		if info, err := os.Stat(path); err == nil {
			p.total += info.Size()
		}
	}
	if p.total >= showFrom {
		p.Bar = NewProgress(w)
	}
	return p
}

// Reader has the bar follow what is read.
func (p *FileProgress) Reader(r io.Reader, path string) io.Reader {
	return &progressReader{r, p, "reading " + ShortPath(path)}
}

func (p *FileProgress) Finish() { p.Bar.Finish() }

type progressReader struct {
	io.Reader
	p    *FileProgress
	what string
}

func (r *progressReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.p.done += int64(n)
	if r.p.done-r.p.shown >= 1<<20 {
		r.p.shown = r.p.done
		r.p.Bar.Show(min(1, float64(r.p.done)/float64(r.p.total)), r.what)
	}
	return n, err
}
