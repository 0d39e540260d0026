package term

import (
	"io"
	"os"
)

// showFrom is the least number of bytes for which a bar is shown: fewer are read in no time.
const showFrom = 16 << 20

// FileProgress is a progress bar for reading files.
type FileProgress struct {
	Bar         Progress
	total, done int64
	shown       int64
}

// NewFileProgress returns a bar on w for reading the files.
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

// Reader returns a reader that moves the bar.
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
