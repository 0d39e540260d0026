package check

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"spamgate/internal/check"
)

// batchSize is the number of bytes of standard input that are judged at a time: some thousand
// addresses. A line must fit; SMTP allows far shorter paths.
const batchSize = 128 << 10

var errLongLine = fmt.Errorf("a line of more than %d bytes is not an address", batchSize)

// batch is some lines of standard input, and the output for them.
type batch struct {
	text   []byte
	out    bytes.Buffer
	lines  int
	bad    error // of the first line that could not be judged, line badAt
	badAt  int
	listed bool
	judged chan struct{}
}

// stream judges the addresses of standard input on all cores, and prints in the order of the
// input. It holds a few batches at a time, however long the input is.
// It reports whether an action other than accept was found.
func stream(ctx context.Context, lines *check.Lines, in io.Reader, out io.Writer) (listed bool, err error) {
	workers := runtime.GOMAXPROCS(0)
	free := make(chan *batch, 2*workers+2) // some to be judged, some to be printed, one to be read
	for range cap(free) {
		free <- &batch{judged: make(chan struct{}, 1)}
	}
	work, order := make(chan *batch, cap(free)), make(chan *batch, cap(free))
	var running sync.WaitGroup
	for range workers {
		running.Go(func() { judgeBatches(ctx, lines, work) })
	}
	p := batchPrinter{out: out}
	running.Go(func() { p.print(order, free) })

	err = readBatches(in, func(text []byte) bool {
		b := <-free
		b.text = append(b.text[:0], text...)
		work <- b
		order <- b
		return !p.failed.Load()
	})
	close(work)
	close(order)
	running.Wait()
	switch {
	case p.err != nil:
		return p.listed, p.err
	case err != nil:
		return p.listed, fmt.Errorf("standard input, line %d: %w", p.lines+1, err)
	}
	return p.listed, p.bad
}

// readBatches calls take with whole lines as they come, until it returns false. The last line
// need not end with a newline.
func readBatches(in io.Reader, take func(text []byte) bool) error {
	buf := make([]byte, batchSize)
	kept := 0 // the start of a line
	for {
		n, err := in.Read(buf[kept:])
		end := kept + n
		whole := bytes.LastIndexByte(buf[:end], '\n') + 1
		if err == io.EOF {
			whole = end
		}
		if whole > 0 && !take(buf[:whole]) {
			return nil
		}
		kept = copy(buf, buf[whole:end])
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case kept == len(buf):
			return errLongLine
		}
	}
}

// batchPrinter prints the batches in the order of the input.
type batchPrinter struct {
	out    io.Writer
	lines  int
	listed bool
	bad    error
	err    error
	failed atomic.Bool // err is set: stop reading
}

func (p *batchPrinter) print(order <-chan *batch, free chan<- *batch) {
	for b := range order {
		<-b.judged
		if p.bad == nil && b.bad != nil {
			p.bad = fmt.Errorf("standard input, line %d: %w", p.lines+b.badAt, b.bad)
		}
		p.lines += b.lines
		p.listed = p.listed || b.listed
		if p.err == nil && b.out.Len() > 0 {
			_, p.err = p.out.Write(b.out.Bytes())
			p.failed.Store(p.err != nil)
		}
		free <- b
	}
}

// judgeBatches judges batches.
func judgeBatches(ctx context.Context, lines *check.Lines, work <-chan *batch) {
	for b := range work {
		b.out.Reset()
		b.lines, b.bad, b.listed = 0, nil, false
		judge := lines.On(&b.out).Judge
		for line := range strings.Lines(string(b.text)) { // one copy for all addresses, which share its memory
			b.lines++
			listed, err := judge(ctx, strings.TrimSpace(line))
			b.listed = b.listed || listed
			if err != nil && b.bad == nil {
				b.bad, b.badAt = err, b.lines
			}
		}
		b.judged <- struct{}{}
	}
}
