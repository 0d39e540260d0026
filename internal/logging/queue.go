package logging

import (
	"sync"
	"sync/atomic"
	"time"
)

// Nothing may wait for a log: a pipe that nobody reads or a syslog daemon that
// hangs would hold up mail and signals alike. So there is a queue before each
// output, and one goroutine that writes.

// The bounds of a queue, of what is waiting and what is being written together.
// A busy gate logs 20,000 lines of 300 bytes in a second, so this is a reader
// that is away for about three seconds.
const (
	maxQueued      = 65_536
	maxQueuedBytes = 16 << 20
)

// keptBuffer is the largest buffer that an idle queue keeps.
const keptBuffer = 256 << 10

// drainLimit is how long closing a queue waits for what is in it.
const drainLimit = 5 * time.Second

// gatherTime is how long lines are gathered after some were written. A line that
// comes alone is written at once, while a busy gate does not wake the writing
// goroutine, and does not ask the system, for each.
const gatherTime = time.Millisecond

// gatherBytes is how much is written without gathering more.
const gatherBytes = 64 << 10

// output is where the entries of a queue go. Its methods may take as long as they
// like; only the queue's goroutine calls them.
type output interface {
	// write writes the first entries of a batch, at least one, and returns how
	// many it has dealt with. Of these the first kept ones were written; the
	// others are lost.
	write(b batch) (done, kept int)

	// reopen opens the output anew, if that means anything for it.
	reopen()

	close() error
}

// notice returns the entry that tells of dropped lines.
type notice func(dropped uint64, since time.Time) (data []byte, text int)

// queue hands entries to an output, in the order in which they came. When it is
// full it drops new ones until half of it has been written, and then says how
// many there were.
type queue struct {
	out    output
	onFull func() // is called when it begins to drop; must not wait; may be nil
	lost   atomic.Uint64
	done   chan struct{} // closed when nothing will be written any more

	mu      sync.Mutex
	changed sync.Cond // of what the goroutine waits for
	idle    bool      // it does wait
	notice  notice
	waiting batch
	spare   batch // the empty buffers that come next

	// held and heldBytes count what waits and what is being written.
	held, heldBytes int

	dropping bool
	dropped  uint64 // since it began
	since    time.Time

	toReopen, closed bool
}

// newQueue starts a queue. It does not end before close.
func newQueue(out output, n notice, onFull func()) *queue {
	q := &queue{out: out, notice: n, onFull: onFull, done: make(chan struct{})}
	q.changed.L = &q.mu
	go q.run()
	return q
}

// add adds a copy of an entry, or drops it. It never waits.
func (q *queue) add(data []byte, text int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || !q.hasRoom(len(data)) {
		q.drop()
	} else {
		q.tellDropped()
		q.push(data, text, 0)
	}
	q.wake()
}

// Write adds a line that is an entry by itself.
func (q *queue) Write(line []byte) (int, error) {
	q.add(line, 0)
	return len(line), nil
}

// hasRoom reports whether a further entry is to be taken.
func (q *queue) hasRoom(size int) bool {
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

// tellDropped adds the notice of the lines that were dropped here, if any.
func (q *queue) tellDropped() {
	if q.dropping {
		data, text := q.notice(q.dropped, q.since)
		q.push(data, text, q.dropped)
		q.dropping, q.dropped = false, 0
	}
}

// wake lets the goroutine go on.
func (q *queue) wake() {
	if q.idle {
		q.changed.Signal()
	}
}

// reopen has the output opened anew, before anything else is written.
func (q *queue) reopen() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.toReopen = true
	q.wake()
}

// close writes what there is, for as long as limit at most, and returns how many
// entries that has left. What is added later is dropped.
func (q *queue) close(limit time.Duration) (left int, err error) {
	q.mu.Lock()
	q.closed = true
	q.wake()
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

// run writes.
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
			failed.tell(q)
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

// take waits for something to do.
func (q *queue) take() (b batch, reopen, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if len(q.waiting.entries) == 0 && q.held == 0 {
			q.tellDropped()
		}
		reopen, q.toReopen = q.toReopen, false
		if reopen || len(q.waiting.entries) > 0 {
			b, q.waiting, q.spare = q.waiting, q.spare, batch{}
			return b, reopen, true
		}
		if q.closed {
			return batch{}, false, false
		}
		q.idle = true
		q.changed.Wait()
		q.idle = false
	}
}

// release counts the first n entries of a batch as written.
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

// giveBack returns the buffers of a batch. It reports whether there is time to
// gather more.
func (q *queue) giveBack(b batch) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if cap(b.data) <= keptBuffer {
		q.spare = batch{b.data[:0], b.entries[:0]}
	}
	return !q.closed && q.heldBytes < gatherBytes
}

// failures are entries that an output has refused, a full disk for instance.
type failures struct {
	n     uint64
	since time.Time
}

// count notes lost entries. The lines that a notice tells of were counted when
// they were dropped.
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

// tell writes a notice of them, once the output takes it.
func (f *failures) tell(q *queue) {
	if f.n == 0 {
		return
	}
	var b batch
	q.mu.Lock() // others use the notice's buffer, too
	data, text := q.notice(f.n, f.since)
	b.add(data, text, f.n)
	q.mu.Unlock()
	if _, kept := q.out.write(b); kept == 1 {
		f.n = 0
	}
}
