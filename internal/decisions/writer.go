package decisions

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"spamgate/internal/sqlite"
)

const (
	batchRows = 1000                   // are written at once
	batchMost = 4000                   // at most so many
	batchWait = 500 * time.Millisecond // after the first row, for others
	lookEvery = time.Minute            // at the files' age and size

	// So many rows are written as soon as no more come for so long. Fewer wait, as each
	// batch costs as much as some ten rows, and makes searches slower.
	burstRows  = 50
	burstQuiet = 25 * time.Millisecond

	totalsEvery = 900 * time.Millisecond // are written
	fileBytes   = 256 << 20              // a file is full
)

// writer is the goroutine of a Recorder that writes.
type writer struct {
	*Recorder
	file   *writeFile // nil while there is none
	floods *floods
	totals *totalsFile
	clock  clock

	unusable map[string]error // files by name
	looked   time.Time
	removed  time.Time // the end of the newest file that had to go for lack of room
	totaled  time.Time // when totals were last written
	retry    time.Duration
	failures int // of one batch, one after the other

	totalsFail bool // the last attempt to write totals
	dropped    int64
}

func newWriter(r *Recorder) *writer {
	return &writer{Recorder: r, floods: newFloods(), totals: &totalsFile{folder: r.folder}, unusable: map[string]error{}}
}

// run writes until the Recorder is closed.
func (w *writer) run() {
	defer close(w.ended)
	w.guarded(w.look)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-w.wake:
		case <-tick.C:
		}
		closed := w.collect()
		for {
			batch := w.take()
			if len(batch) == 0 {
				break
			}
			w.writeGuarded(batch)
		}
		total := w.hurry() || time.Since(w.totaled) >= totalsEvery
		if total {
			w.guarded(w.writeTotals)
			w.totaled = time.Now()
		}
		w.guarded(w.lookWhenDue)
		if total {
			w.answer()
		}
		if closed {
			w.guarded(w.end)
			return
		}
	}
}

// lookWhenDue looks after the files now and then.
func (w *writer) lookWhenDue() {
	if w.now().Sub(w.looked).Abs() >= lookEvery {
		w.guarded(w.closeOver)
		w.look()
	}
}

// guarded calls f. A panic stands the history still as an error does: it must not end the gate.
func (w *writer) guarded(f func()) {
	if err := w.caught(f); err != nil {
		w.failed(err)
	}
}

// caught calls f, and returns its panic as an error.
func (w *writer) caught(f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			w.logger.Error("history of decisions: fault", "error", fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	f()
	return nil
}

// writeGuarded writes a batch. After a panic what is not written is lost, and the next batch begins
// anew.
func (w *writer) writeGuarded(batch []*Decision) {
	w.mu.Lock()
	before := w.settled
	w.mu.Unlock()
	err := w.caught(func() { w.write(batch) })
	if err == nil {
		return
	}
	w.mu.Lock()
	written := int(w.settled - before)
	w.mu.Unlock()
	w.failedFor(err, len(batch)-written)
	w.floods.renew()
	w.guarded(w.closeFile)
	w.file = nil
}

// writeTotals adds to the totals what was counted since.
func (w *writer) writeTotals() {
	if n := w.accepts.Swap(0); n > 0 {
		w.tally.add(w.now(), "accept", "", "", n)
	}
	pending := w.tally.take()
	if len(pending) == 0 {
		return
	}
	err := w.totals.write(pending)
	w.totalsFail = err != nil
	if err != nil {
		w.tally.putBack(pending)
		w.failed(err)
	} else {
		w.works()
	}
}

// collect waits a moment for more rows if only a few wait, and reports whether the Recorder is closed.
func (w *writer) collect() (closed bool) {
	end := time.NewTimer(batchWait)
	defer end.Stop()
	for {
		n, closed := w.waiting()
		if n == 0 || n >= batchRows || w.hurry() {
			return closed
		}
		var quiet <-chan time.Time
		if n >= burstRows {
			quiet = time.After(burstQuiet)
		}
		select {
		case <-w.wake:
		case <-quiet:
			if current, _ := w.waiting(); current == n {
				return closed
			}
		case <-end.C:
			return closed
		}
	}
}

// waiting returns how many rows wait, and whether the Recorder is closed.
func (w *writer) waiting() (rows int, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue), w.closed
}

// hurry reports whether somebody waits for the writer.
func (w *writer) hurry() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed || len(w.waiters) > 0
}

// take removes a batch from the queue. The file and its write-ahead log grow by no more than
// limits.slack for it.
func (w *writer) take() []*Decision {
	most := int(w.limits.Load().slack() / 3)
	w.mu.Lock()
	defer w.mu.Unlock()
	n, bytes := 0, 0
	for n < min(len(w.queue), batchMost) && bytes < most {
		bytes += w.queue[n].size()
		n++
	}
	batch := w.queue[:n:n]
	w.bytes -= bytes
	if w.queue = w.queue[n:]; len(w.queue) == 0 {
		w.queue = nil
	}
	return batch
}

// write writes a batch. It returns when the batch is written or dropped.
func (w *writer) write(batch []*Decision) {
	now := w.now()
	for _, d := range batch {
		d.Trim(now)
	}
	for len(batch) > 0 {
		if !w.open(batch[0].Time) {
			if w.pause() {
				continue
			}
			w.lose(len(batch))
			return
		}
		n := 1
		for n < len(batch) && w.file.holds(batch[n].Time) {
			n++
		}
		w.writeRun(batch[:n])
		batch = batch[n:]
	}
}

// run is a part of a batch that goes to one file.
type run struct {
	rows   []*Decision
	floods []*flood // of each row; nil for none
	counts []*flood // whose rows were written before, and have another count now
	merged int
}

// writeRun writes decisions to the open file, or to another one if that fails.
func (w *writer) writeRun(all []*Decision) {
	var r run
	room := cmp.Or(w.share, w.limits.Load().share())
	for _, d := range all {
		flood, row := w.floods.add(d, room)
		if row != nil {
			r.rows, r.floods = append(r.rows, row), append(r.floods, flood)
			continue
		}
		r.merged++
		if flood.row != nil {
			flood.row.Count, flood.row.Last = flood.count, flood.last
		} else if !flood.dirty {
			flood.dirty = true
			r.counts = append(r.counts, flood)
		}
	}
	for {
		before := w.file.seed
		err := w.file.append(r.rows, r.merges())
		if err == nil && !w.file.present() {
			err = errGone
		}
		if err == nil {
			w.written(&r)
			return
		}
		if !w.recover(err, all[0].Time) {
			w.lose(len(all))
			w.floods.renew()
			return
		}
		if w.file.seed != before {
			w.mu.Lock()
			w.drop(r.forget())
			w.mu.Unlock()
		}
	}
}

var errGone = errors.New("the file was removed or truncated")

// merges returns the new counts of rows.
func (r *run) merges() (all []merged) {
	for _, flood := range r.counts {
		all = append(all, merged{flood.n, flood.count, flood.last})
	}
	return all
}

// forget removes the new counts of rows, which are in a file that cannot be written any more, and
// returns how many decisions that loses.
func (r *run) forget() int {
	lost := len(r.counts)
	r.counts = nil
	return lost
}

// written notes that a run is in the file.
func (w *writer) written(r *run) {
	first := w.file.n - int64(len(r.rows)) + 1
	for i, flood := range r.floods {
		if flood != nil && flood.row == r.rows[i] {
			flood.row, flood.n = nil, first+int64(i)
		}
	}
	for _, flood := range r.counts {
		flood.dirty = false
	}
	w.mu.Lock()
	w.stats.Rows += int64(len(r.rows))
	w.stats.Merged += int64(r.merged)
	w.settled += uint64(len(r.rows) + r.merged)
	w.mu.Unlock()
	w.works()
	w.publish(r.rows)
}

// lose drops decisions that were taken from the queue.
func (w *writer) lose(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(n)
	w.settled += uint64(n)
}

// drop counts lost decisions. The caller has locked mu.
func (w *writer) drop(n int) {
	w.stats.Dropped += int64(n)
	w.lost += uint64(n)
}

// recover prepares another attempt to write after an error, and reports whether there can be one.
func (w *writer) recover(err error, instant time.Time) bool {
	if sqlite.IsBusy(err) {
		w.failed(err)
		return w.pause()
	}
	damaged := isDamaged(err)
	if damaged {
		w.unusable[w.file.name()] = err
	}
	w.failures++
	if !sqlite.IsSystem(err) && !damaged && err != errGone && w.failures >= 3 {
		w.failures = 0
		w.failed(err)
		return false
	}
	w.closeFile()
	if err != errGone {
		w.failed(err)
		if !w.pause() {
			return false
		}
	}
	for !w.open(instant) {
		if !w.pause() {
			return false
		}
	}
	return true
}

// pause waits before another attempt, and reports whether there is to be one: not at the end of
// the gate. Who waits for the history gets another attempt at once.
func (w *writer) pause() bool {
	w.retry = min(max(2*w.retry, 100*time.Millisecond), 10*time.Second)
	end := time.NewTimer(w.retry)
	defer end.Stop()
	for {
		w.mu.Lock()
		closed := w.closed
		w.mu.Unlock()
		if w.hurry() {
			return !closed
		}
		select {
		case <-w.wake:
		case <-end.C:
			return true
		}
	}
}

// failed notes that the history stands still, and tells those who wait.
func (w *writer) failed(err error) { w.failedFor(err, 0) }

// failedFor is failed with so many decisions that are lost: who is told finds them lost.
func (w *writer) failedFor(err error, lost int) {
	w.mu.Lock()
	for _, waiter := range w.waiters {
		waiter.done <- err
	}
	w.waiters = nil
	first := w.stats.Err == ""
	w.stats.Err = err.Error()
	if first {
		w.dropped = w.stats.Dropped
	}
	w.drop(lost)
	w.settled += uint64(lost)
	w.mu.Unlock()
	if first {
		w.logger.Error("history of decisions stands still, mail passes", slog.Any("error", err))
	}
}

// works notes that the history works.
func (w *writer) works() {
	w.failures, w.retry = 0, 0
	w.mu.Lock()
	again := w.stats.Err != "" && !w.totalsFail
	if again {
		w.stats.Err = ""
	}
	dropped := w.stats.Dropped - w.dropped
	w.mu.Unlock()
	if again {
		w.logger.Info("history of decisions works again", slog.Int64("dropped", dropped))
	}
}

// open opens a file for rows of the given time, unless the open one is right.
func (w *writer) open(instant time.Time) bool {
	most := w.limits.Load().fileBytes()
	if w.file != nil && w.file.holds(instant) && w.folder.size(w.file.name()) < most {
		return true
	}
	w.closeFile()
	known := len(w.unusable)
	file, err := w.folder.openWrite(instant.Format(dayFormat), most, w.unusable)
	if len(w.unusable) > known {
		w.logger.Warn("files of the history of decisions are not used", "files", fmt.Sprint(slices.Sorted(maps.Keys(w.unusable))))
	}
	if err != nil {
		w.failed(err)
		return false
	}
	w.file = file
	w.floods.renew()
	w.look()
	return true
}

// holds reports whether a file may have rows of the given time: those of its day, and of the minute
// before, since the times of rows may be somewhat out of order.
func (w *writeFile) holds(instant time.Time) bool {
	t := instant.UnixNano()
	return t < w.end() && t >= w.start()-int64(time.Minute)
}

// closeOver closes the open file if its day is over: while it is open it is not removed, and the next
// row may come in a month.
func (w *writer) closeOver() {
	if w.file != nil && w.file.end()+int64(time.Minute) <= w.now().UnixNano() {
		w.closeFile()
	}
}

func (w *writer) closeFile() {
	if w.file != nil {
		w.file.finish()
		w.file = nil
	}
}

// answer answers those who wait for what is settled now.
func (w *writer) answer() {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := w.waiters[:0]
	for _, waiter := range w.waiters {
		switch {
		case waiter.recorded > w.settled && !w.closed:
			rest = append(rest, waiter)
			continue
		case waiter.recorded > w.settled, w.lost > waiter.lost:
			waiter.done <- errLost
		case w.totalsFail:
			waiter.done <- errors.New(w.stats.Err)
		default:
			waiter.done <- nil
		}
	}
	w.waiters = rest
}

// end closes the files.
func (w *writer) end() {
	w.closeFile()
	w.totals.close()
}
