package listfiles

import (
	"context"
	"fmt"
	"io"
	"os"

	"spamgate/internal/term"
)

// Input is an open file, or standard input.
type Input struct {
	Path string
	io.Reader
	Close func()
}

// OpenInput opens a file; "-" means standard input. Reading ends with ctx and moves the
// progress bar.
func OpenInput(ctx context.Context, stdin io.Reader, path string, bar *term.FileProgress) (*Input, error) {
	open := func() (io.ReadCloser, error) { return os.Open(path) }
	if path == "-" {
		path = "standard input"
		open = func() (io.ReadCloser, error) { return io.NopCloser(stdin), nil }
	} else if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.IsDir() {
		return nil, fmt.Errorf("%s is a directory: name a file", path)
	} else if info.Mode().IsRegular() {
		f, err := open()
		if err != nil {
			return nil, err
		}
		return &Input{path, bar.Reader(Stoppable(ctx, f), path), func() { f.Close() }}, nil
	}
	f := awaited(ctx, open)
	return &Input{path, bar.Reader(f, path), func() { f.Close() }}, nil
}

// awaited returns a reader of slow input, such as a terminal or a pipe. Another goroutine
// reads it, so that ctx ends the reading at once. That goroutine may then wait until the
// process ends.
func awaited(ctx context.Context, open func() (io.ReadCloser, error)) io.ReadCloser {
	r, w := io.Pipe()
	stop := context.AfterFunc(ctx, func() { w.CloseWithError(context.Cause(ctx)) })
	go func() {
		defer stop()
		f, err := open()
		if err == nil {
			_, err = io.Copy(w, f)
			f.Close()
		}
		w.CloseWithError(err)
	}()
	return r
}

// Stoppable returns a reader that fails once the context ends.
func Stoppable(ctx context.Context, r io.Reader) io.Reader { return stoppableReader{ctx, r} }

type stoppableReader struct {
	ctx context.Context
	io.Reader
}

func (s stoppableReader) Read(p []byte) (int, error) {
	if err := context.Cause(s.ctx); err != nil {
		return 0, err
	}
	return s.Reader.Read(p)
}
