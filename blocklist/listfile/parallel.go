package listfile

import (
	"bufio"
	"context"
	"io"
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
