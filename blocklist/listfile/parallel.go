package listfile

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// partSize is how much text a worker is given at a time. Its problems are held
// until those of the parts before it have been reported, so it bounds memory.
const partSize = 256 << 10

// ReadParallel is Read with several workers, for large files. It calls sink for
// each worker, and what that returned with the worker's entries: in any order,
// but no sink by two at once. The problems come in the order of the file and by
// one goroutine. The entries, the problems and the result are those of Read. It
// ends with its context, once r has returned.
//
// A format in which the meaning of a line depends on those before it is read by
// one worker.
//
// The strings of an Entry may be parts of a longer text: who keeps a few of many
// clones them.
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
		err := readLines(in.Reader, out)
		return out.finish(), err
	}
	err = readParts(ctx, in.Reader, out, g, workers, sink)
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

// part is some whole lines of a file.
type part struct {
	text  string
	first int   // number of the first line
	long  bool  // text is the head of one line, of which there is more
	err   error // instead of text: the file could not be read on

	done chan read // takes one
}

// read is what a part held.
type read struct {
	out      *output
	problems []Problem
	err      error
}

// readParts has one goroutine cut the file and the workers read the parts, and
// puts together in order what they found.
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
			p := c.part
			select {
			case work <- p:
			case <-ctx.Done():
				return
			}
			select {
			case inOrder <- p:
			case <-ctx.Done():
				return
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

// read reads the lines of a part.
func (p *part) read(g *grammar, o Options, entry func(Entry) error) (r read) {
	r.out = newOutput(o, entry, func(problem Problem) { r.problems = append(r.problems, problem) })
	if p.err != nil {
		r.err = p.err
		return r
	}
	line, rest := p.first, p.text
	if at := strings.IndexByte(rest, 0); at >= 0 {
		r.err = fmt.Errorf("line %d: %w", line+strings.Count(rest[:at], "\n"), ErrBinary)
		return r
	}
	for ; rest != "" && r.err == nil; line++ {
		end := strings.IndexByte(rest, '\n') + 1
		if end == 0 {
			end = len(rest)
		}
		text, long := head(rest[:end])
		rest = rest[end:]
		r.err = r.out.take(g, line, text, long || p.long)
	}
	r.out.result.Lines = line - p.first
	return r
}

// cutter cuts a file into parts.
type cutter struct {
	in   *bufio.Reader
	line int    // the number of the next line
	buf  []byte // what was read and not cut off yet: a line's beginning
	err  error  // where reading ended, io.EOF or not
	part *part
}

// next cuts off the next part, false at the end. A part with an error is the
// last one.
func (c *cutter) next() bool {
	if c.buf == nil {
		c.buf = make([]byte, 0, partSize)
	}
	for len(c.buf) < partSize && c.err == nil {
		var n int
		n, c.err = c.in.Read(c.buf[len(c.buf):partSize])
		c.buf = c.buf[:len(c.buf)+n]
	}
	c.part = &part{first: c.line, done: make(chan read, 1)}
	cut := bytes.LastIndexByte(c.buf, '\n') + 1
	switch {
	case c.err == io.EOF && len(c.buf) == 0:
		return false
	case c.err == io.EOF:
		cut = len(c.buf) // the last line has no end
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

// longLine makes a part of a line that is as long as a part or longer.
func (c *cutter) longLine() {
	c.part.text, c.part.long = string(c.buf[:MaxLine+len(bom)]), true
	err := ErrBinary
	if bytes.IndexByte(c.buf, 0) < 0 {
		err = skipLine(c.in)
	}
	c.buf = c.buf[:0]
	switch {
	case errors.Is(err, ErrBinary):
		c.fail("line", err)
	case err == io.EOF:
		c.err = err
	case err != nil:
		c.fail("reading line", err)
	}
	c.line++
}

// fail makes the part the last one, and an error.
func (c *cutter) fail(what string, err error) {
	c.part.err = fmt.Errorf("%s %d: %w", what, c.line, err)
	c.buf, c.err = c.buf[:0], io.EOF
}
