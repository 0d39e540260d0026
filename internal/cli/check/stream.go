package check

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/config"
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
func (k *session) stream(in io.Reader, out io.Writer) error {
	workers := runtime.GOMAXPROCS(0)
	free := make(chan *batch, 2*workers+2) // some to be judged, some to be printed, one to be read
	for range cap(free) {
		free <- &batch{judged: make(chan struct{}, 1)}
	}
	work, order := make(chan *batch, cap(free)), make(chan *batch, cap(free))
	var running sync.WaitGroup
	for range workers {
		w := *k
		running.Go(func() { w.judgeBatches(work) })
	}
	p := printer{out: out}
	running.Go(func() { p.print(order, free) })

	err := readBatches(in, func(text []byte) bool {
		b := <-free
		b.text = append(b.text[:0], text...)
		work <- b
		order <- b
		return !p.failed.Load()
	})
	close(work)
	close(order)
	running.Wait()
	k.listed = k.listed || p.listed
	switch {
	case p.err != nil:
		return p.err
	case err != nil:
		return fmt.Errorf("standard input, line %d: %w", p.lines+1, err)
	}
	return p.bad
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

// printer prints the batches in the order of the input.
type printer struct {
	out    io.Writer
	lines  int
	listed bool
	bad    error
	err    error
	failed atomic.Bool // err is set: stop reading
}

func (p *printer) print(order <-chan *batch, free chan<- *batch) {
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

// judgeBatches judges batches. Each goroutine has its own copy of the session.
func (k *session) judgeBatches(work <-chan *batch) {
	for b := range work {
		b.out.Reset()
		b.lines, b.bad = 0, nil
		k.listed = false
		k.printTo(&b.out)
		for line := range strings.Lines(string(b.text)) { // one copy for all addresses, which share its memory
			b.lines++
			if err := k.checkLine(strings.TrimSpace(line)); err != nil && b.bad == nil {
				b.bad, b.badAt = err, b.lines
			}
		}
		b.listed = k.listed
		b.judged <- struct{}{}
	}
}

// checkLine judges one line of standard input, and prints it unless it is accepted. Most
// addresses are in no list, and need only a lookup that allocates nothing.
func (k *session) checkLine(address string) error {
	if address == "" || !k.options.all && k.isUnknown(address) {
		return nil
	}
	r, envelope, header := k.result(address)
	k.note(envelope.Verdict.Action, header.Verdict.Action)
	monitored := append(envelope.Verdict.Monitored, header.Verdict.Monitored...)
	if r.Action == verdict.Accept.String() && len(monitored) > 0 && !k.options.json {
		r.Action = "monitor"
		envelope.Verdict.Match = monitored[0]
	}
	if r.Action != verdict.Accept.String() || len(monitored) > 0 || k.options.all {
		_ = k.printLine(r, envelope, header) // into memory, and what is in r can be encoded
	}
	switch {
	case envelope.Err == nil:
		return header.Err
	case envelope.NoAnswer():
		return envelope.Err
	}
	return fmt.Errorf("%q is not an address: %w", address, envelope.Err)
}

// isUnknown reports whether no list has an entry for an address.
func (k *session) isUnknown(address string) bool {
	a, err := sender.Parse(address)
	if err != nil || k.asks() {
		return false
	}
	if _, _, wraps := sender.Unwrap(a, k.judge.View().Wrappings()); wraps {
		return false
	}
	d, err := k.judge.View().Lookup(verdict.Envelope, a)
	if err == nil && d.Matches == nil && !k.alike {
		d, err = k.judge.View().Lookup(verdict.Header, a)
	}
	return err == nil && d.Matches == nil
}

// stagesAlike reports whether the lists that count give the same verdict on a sender in the
// envelope and in the header, so that one lookup is enough. SPF counts in the envelope alone.
func stagesAlike(c *config.Config, names []string) bool {
	return !slices.ContainsFunc(c.Lists, func(l config.List) bool {
		counts := len(names) == 0 || slices.Contains(names, l.Name)
		return counts && (len(l.ProvenBy) > 0 || len(l.Stage) < 2 || l.HeaderAction != "" && l.HeaderAction != l.Action)
	})
}
