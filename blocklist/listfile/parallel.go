package listfile

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
)

// ReadParallel reads a large list with several workers. It calls sink once for each
// worker, and passes the worker's entries to the function that sink returned: in any
// order, but not from two goroutines at once. One goroutine calls problem, in the
// order of the file. The entries, the problems and the result are those of a
// [Reader]. It ends with its context, once r has returned, or with the first error of
// a sink's function.
//
// If the meaning of a line depends on those before it, as in some formats, one
// worker reads the file.
//
// The strings of an Entry may be parts of a longer text: to keep a few of many
// entries, clone them.
func ReadParallel(ctx context.Context, r io.Reader, o Options, workers int, sink func() func(Entry) error, problem func(Problem)) (Result, error) {
	out := newOutput(o, nil, problem)
	in, err := start(&stoppable{ctx, r}, out)
	if err != nil {
		return out.result, err
	}
	defer in.close()
	g, err := grammarOf(out.result.Format)
	if err != nil {
		return out.result, err
	}
	if !g.each || workers < 2 {
		out.entry = sink()
		err = readLines(in.Reader, out)
	} else {
		err = readParts(ctx, in.Reader, out, g, workers, sink)
	}
	return out.finish(), err
}

// stoppable is a reader that ends with its context.
type stoppable struct {
	ctx context.Context
	in  io.Reader
}

func (s *stoppable) Read(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.in.Read(p)
}

// partResult is the result of reading a part.
type partResult struct {
	out      *output
	problems []Problem
	err      error
}

// readParts cuts the file in one goroutine, reads the parts in the workers, and
// merges their results in order.
func readParts(ctx context.Context, in *bufio.Reader, out *output, g *grammar, workers int, sink func() func(Entry) error) error {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()

	work := make(chan *part)
	inOrder := make(chan *part, 2*workers)
	running.Go(func() {
		defer close(inOrder)
		defer close(work)
		c := cutter{in: in, line: 1}
		for c.next() {
			for _, to := range []chan *part{work, inOrder} {
				select {
				case to <- c.part:
				case <-ctx.Done():
					return
				}
			}
		}
	})
	for range workers {
		entry := sink()
		running.Go(func() {
			for p := range work {
				if ctx.Err() == nil {
					p.done <- p.read(g, out.options, entry)
				}
			}
		})
	}
	for p := range inOrder {
		select {
		case <-ctx.Done():
		case r := <-p.done:
			out.merge(r.out)
			for _, problem := range r.problems {
				out.problem(problem)
			}
			if r.err != nil {
				return r.err
			}
		}
	}
	return context.Cause(ctx)
}

// read reads the lines of a part, for one worker.
func (p *part) read(g *grammar, o Options, entry func(Entry) error) (r partResult) {
	r.out = newOutput(o, entry, func(problem Problem) { r.problems = append(r.problems, problem) })
	r.err = p.readLines(g, r.out, false)
	return r
}

// partSize is the number of bytes that are read at a time, and handed to a worker.
// A worker's problems are held until those of the parts before it have been
// reported, so it bounds memory.
const partSize = 256 << 10

// part is some whole lines of a file.
type part struct {
	text  string
	first int   // number of the first line
	long  bool  // text is only the beginning of one line
	err   error // set instead of text where the file could not be read

	done chan partResult // takes one
}

// readLines reads the lines of a part. With clone each entry has its own memory;
// else its strings are parts of the text.
func (p *part) readLines(g *grammar, out *output, clone bool) error {
	if p.err != nil {
		return p.err
	}
	if pos := strings.IndexByte(p.text, 0); pos >= 0 {
		return fmt.Errorf("line %d: %w", p.first+strings.Count(p.text[:pos], "\n"), ErrBinary)
	}
	line := p.first
	for text := range strings.Lines(p.text) {
		text, long := head(text)
		if clone {
			text = strings.Clone(text)
		}
		out.result.Lines++
		if out.take(g, line, text, long || p.long); out.err != nil {
			return out.err
		}
		line++
	}
	return nil
}

// cutter cuts a file into parts.
type cutter struct {
	in   *bufio.Reader
	line int    // the number of the next line
	buf  []byte // bytes that belong to no part yet: the beginning of a line
	err  error  // the error that ended reading, io.EOF or another
	part *part
}

// next reads the next part, and reports whether there is one. A part with an error
// is the last one.
func (c *cutter) next() bool {
	if c.buf == nil {
		c.buf = make([]byte, 0, partSize)
	}
	for len(c.buf) < partSize && c.err == nil {
		var n int
		n, c.err = c.in.Read(c.buf[len(c.buf):partSize])
		c.buf = c.buf[:len(c.buf)+n]
	}
	c.part = &part{first: c.line, done: make(chan partResult, 1)}
	cut := bytes.LastIndexByte(c.buf, '\n') + 1
	switch {
	case c.err == io.EOF && len(c.buf) == 0:
		return false
	case c.err == io.EOF:
		cut = len(c.buf) // the last line has no line end
	case c.err != nil && cut == 0:
		c.fail("reading line", c.err)
		return true
	case cut == 0:
		c.longLine()
		return true
	}
	c.part.text = string(c.buf[:cut])
	c.line += bytes.Count(c.buf[:cut], []byte("\n"))
	c.buf = append(c.buf[:0], c.buf[cut:]...)
	return true
}

// longLine makes a part of a line that is longer than a part.
func (c *cutter) longLine() {
	c.part.text, c.part.long = string(c.buf[:MaxLine+len(bom)]), true
	err := ErrBinary
	if bytes.IndexByte(c.buf, 0) < 0 {
		err = skipLine(c.in)
	}
	c.buf = c.buf[:0]
	switch err {
	case nil:
	case ErrBinary:
		c.fail("line", err)
	case io.EOF:
		c.err = err
	default:
		c.fail("reading line", err)
	}
	c.line++
}

// fail sets the error of the part and ends the file.
func (c *cutter) fail(what string, err error) {
	c.part.err = fmt.Errorf("%s %d: %w", what, c.line, err)
	c.buf, c.err = c.buf[:0], io.EOF
}

// skipLine discards the rest of a line.
func skipLine(in *bufio.Reader) error {
	for {
		rest, err := in.ReadSlice('\n')
		if bytes.IndexByte(rest, 0) >= 0 {
			return ErrBinary
		}
		if err != bufio.ErrBufferFull {
			return err
		}
	}
}
