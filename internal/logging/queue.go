package logging

import (
	"sync"
	"sync/atomic"
	"time"
)

// Logging must not wait: a pipe that nobody reads, or a syslog daemon that hangs,
// would stop mail and signals. So each output has a queue and one goroutine that
// writes.

// The limits of a queue, of the entries that wait and that are being written
// together. A busy gate logs 20,000 lines of 300 bytes per second, so that a reader
// may pause for about three seconds.
const (
	maxQueued      = 65_536
	maxQueuedBytes = 16 << 20
)

// keptBuffer is the largest buffer that an idle queue keeps.
const keptBuffer = 256 << 10

// drainLimit is how long closing a queue waits for its entries.
const drainLimit = 5 * time.Second

// gatherTime is how long the queue collects lines after it has written some. A single
// line is written at once, but a busy gate does not wake the goroutine, and make a
// system call, for each.
const gatherTime = time.Millisecond

// gatherBytes is enough to write without collecting more.
const gatherBytes = 64 << 10

// output is the destination of a queue. Its methods may block; only the queue's
// goroutine calls them.
type output interface {
	// write takes the first done entries of a batch, at least one. It has written
	// the first kept of these; the others are lost.
	write(b batch) (done, kept int)

	// reopen opens a file again; other outputs do nothing.
	reopen()

	close() error
}

// notice returns the entry that reports dropped lines.
type notice func(dropped uint64, since time.Time) (data []byte, text int)

// queue passes entries to an output, in order. When it is full it drops new entries
// until half of it is written, and then adds a notice with their number.
type queue struct {
	out    output
	onFull func() // called when it begins to drop; must not block; may be nil
	lost   atomic.Uint64
	done   chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	changed sync.Cond // wakes the goroutine
	notice  notice
	waiting batch
	spare   batch // the next empty buffers

	// held and heldBytes count the entries that wait or are being written.
	held, heldBytes int

	dropping bool
	dropped  uint64 // since it began
	since    time.Time

	toReopen, closed bool
}

// newQueue starts a queue, which ends with close.
func newQueue(out output, n notice, onFull func()) *queue {
	q := &queue{out: out, notice: n, onFull: onFull, done: make(chan struct{})}
	q.changed.L = &q.mu
	go q.run()
	return q
}

// add adds a copy of an entry, or drops it. It never blocks.
func (q *queue) add(data []byte, text int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || !q.accepts(len(data)) {
		q.drop()
	} else {
		q.reportDropped()
		q.push(data, text, 0)
	}
	q.changed.Signal()
}

// Write adds a line as an entry.
func (q *queue) Write(line []byte) (int, error) {
	q.add(line, 0)
	return len(line), nil
}

// accepts reports whether an entry of this size fits.
func (q *queue) accepts(size int) bool {
	if q.dropping && (q.held > maxQueued/2 || q.heldBytes > maxQueuedBytes/2) {
		return false
	}
	return q.held < maxQueued && q.heldBytes+size <= maxQueuedBytes
}

func (q *queue) push(data []byte, text int, dropped uint64) {
	q.waiting.add(data, text, dropped)
	q.held++
	q.heldBytes += len(data)
}

func (q *queue) drop() {
	q.lost.Add(1)
	if !q.dropping {
		q.dropping, q.since = true, time.Now()
		if q.onFull != nil && !q.closed {
			q.onFull()
		}
	}
	q.dropped++
}

// reportDropped adds a notice of the lines that were dropped before, if any.
func (q *queue) reportDropped() {
	if q.dropping {
		data, text := q.notice(q.dropped, q.since)
		q.push(data, text, q.dropped)
		q.dropping, q.dropped = false, 0
	}
}

// reopen makes the goroutine reopen the output before it writes again.
func (q *queue) reopen() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.toReopen = true
	q.changed.Signal()
}

// close lets the goroutine write for at most limit, and returns how many entries are
// left. Later entries are dropped.
func (q *queue) close(limit time.Duration) (left int, err error) {
	q.mu.Lock()
	q.closed = true
	q.changed.Signal()
	q.mu.Unlock()
	select {
	case <-q.done:
		return 0, q.out.close()
	case <-time.After(limit): // the goroutine still has the output
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held, nil
}

// run writes until close.
func (q *queue) run() {
	defer close(q.done)
	var failed failures
	for {
		b, reopen, more := q.take()
		if reopen {
			q.out.reopen()
		}
		if !more {
			return
		}
		for rest := b; len(rest.entries) > 0; {
			failed.report(q)
			done, kept := q.out.write(rest)
			failed.count(q, rest.entries[kept:done])
			q.release(rest, done)
			rest = rest.after(done)
		}
		if q.giveBack(b) {
			time.Sleep(gatherTime)
		}
	}
}

// take waits for entries, for reopen or for close.
func (q *queue) take() (b batch, reopen, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if len(q.waiting.entries) == 0 && q.held == 0 {
			q.reportDropped()
		}
		reopen, q.toReopen = q.toReopen, false
		if reopen || len(q.waiting.entries) > 0 {
			b, q.waiting, q.spare = q.waiting, q.spare, batch{}
			return b, reopen, true
		}
		if q.closed {
			return batch{}, false, false
		}
		q.changed.Wait()
	}
}

// release subtracts the first n entries of a batch from what the queue holds.
func (q *queue) release(b batch, n int) {
	size := 0
	for _, e := range b.entries[:n] {
		size += e.size
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held -= n
	q.heldBytes -= size
}

// giveBack keeps the buffers of a batch for the next, and reports whether to collect
// more lines.
func (q *queue) giveBack(b batch) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if cap(b.data) <= keptBuffer {
		q.spare = batch{b.data[:0], b.entries[:0]}
	}
	return !q.closed && q.heldBytes < gatherBytes
}

// failures counts entries that an output has refused, such as on a full disk.
type failures struct {
	n     uint64
	since time.Time
}

// count adds lost entries. The lines that a notice reports were counted when they
// were dropped.
func (f *failures) count(q *queue, lost []entry) {
	for _, e := range lost {
		if f.n == 0 {
			f.since = time.Now()
		}
		if e.dropped == 0 {
			q.lost.Add(1)
		}
		f.n += max(e.dropped, 1)
	}
}

// report writes a notice of them, once the output accepts it.
func (f *failures) report(q *queue) {
	if f.n == 0 {
		return
	}
	var b batch
	q.mu.Lock() // guards the notice's buffer
	data, text := q.notice(f.n, f.since)
	b.add(data, text, f.n)
	q.mu.Unlock()
	if _, kept := q.out.write(b); kept == 1 {
		f.n = 0
	}
}
