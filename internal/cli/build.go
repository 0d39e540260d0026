package cli

import (
	"context"
	"io"

	"spamgate/blocklist"
	"spamgate/blocklist/store"
	"spamgate/internal/term"
)

// ReadProgress shows a progress bar for each list that a store reads.
type ReadProgress struct {
	W   io.Writer
	bar *term.FileProgress
}

// Follow implements the Follow function of a store's configuration.
func (p *ReadProgress) Follow(path string, from io.Reader) io.Reader {
	p.Finish()
	p.bar = term.NewFileProgress(p.W, path)
	return p.bar.Reader(from, path)
}

func (p *ReadProgress) Finish() {
	if p.bar != nil {
		p.bar.Finish()
	}
}

// BuildSet builds a Set with a progress bar on w.
func BuildSet(ctx context.Context, c store.Config, w io.Writer) (*blocklist.Set, []blocklist.ListStats, error) {
	p := ReadProgress{W: w}
	defer p.Finish()
	c.Follow = p.Follow
	return store.Build(ctx, c)
}
