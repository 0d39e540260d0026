package decisions

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"spamgate/internal/atomicfile"
)

// Options configure a [Recorder].
type Options struct {
	Dir      string        // is made if it is missing
	Keep     time.Duration // older rows are removed, a file at a time
	MaxBytes int64         // of all files together
	All      bool          // also keep rows of plain accepts, which otherwise count in the totals only
	Logger   *slog.Logger  // gets each problem once, and when it is over
	Now      func() time.Time

	share int64 // for tests, in place of limits.share; 0: none
}

// Bounds of the queue between the mail and the writer.
const (
	queueRows  = 65536
	queueBytes = 64 << 20
)

// Recorder writes the history. Its methods never wait for the disk, apart from Open, Sync
// and Close.
type Recorder struct {
	folder folder
	logger *slog.Logger
	now    func() time.Time
	limits atomic.Pointer[limits]
	share  int64 // of Options

	tally   tally
	accepts atomic.Int64 // plain accepts that the tally does not have yet

	mu        sync.Mutex
	queue     []*Decision
	bytes     int    // of the queue
	recorded  uint64 // rows that came into the queue
	settled   uint64 // rows of them that are written, merged or dropped
	lost      uint64 // rows of them that are dropped
	waiters   []waiter
	closed    bool
	followers map[chan Decision]struct{}
	stats     Stats

	wake  chan struct{} // something is to do at once
	ended chan struct{} // closed when the writer has ended
}

// limits are the options that a reload may change.
type limits struct {
	keep     time.Duration
	maxBytes int64
	all      bool
}

// waiter waits until so many rows are settled.
type waiter struct {
	recorded uint64
	lost     uint64 // when it began
	done     chan error
}

// Stats say what a [Recorder] has done since it was opened, and what it keeps.
type Stats struct {
	Rows    int64  // written
	Merged  int64  // counted in a row that was there
	Dropped int64  // lost, since the queue was full, or at the end of the process
	Queued  int    // waiting now
	Bytes   int64  // of all files, also those of other processes
	Files   int    // databases
	Err     string // why it stands still, "" if it does not

	Short bool // the files had to be removed for lack of room, and they reach back less than they are to

	Oldest time.Time // about the time of the oldest row; zero if there is none
}

// Open opens the history for writing. Several processes may write to one directory.
func Open(o Options) (*Recorder, error) {
	r := &Recorder{
		folder:    newFolder(o.Dir),
		logger:    o.Logger,
		now:       o.Now,
		share:     o.share,
		followers: map[chan Decision]struct{}{},
		wake:      make(chan struct{}, 1),
		ended:     make(chan struct{}),
	}
	if r.logger == nil {
		r.logger = slog.New(slog.DiscardHandler)
	}
	if r.now == nil {
		r.now = time.Now
	}
	r.Configure(o.Keep, o.MaxBytes, o.All)
	err := r.folder.tree.MakeDirs(r.folder.name)
	if err != nil && atomicfile.IsTrap(err) {
		return nil, err
	}
	go newWriter(r).run()
	return r, nil
}

// Configure changes the options after a reload.
func (r *Recorder) Configure(keep time.Duration, maxBytes int64, all bool) {
	r.limits.Store(&limits{keep, maxBytes, all})
	r.kick()
}

// Accepted is for a plain accept, one without a list. It reports whether the history wants its row: then
// the caller records it. Otherwise it is counted now, which costs next to nothing.
func (r *Recorder) Accepted(instant time.Time) bool {
	if r.limits.Load().all {
		return true
	}
	r.accepts.Add(1)
	return false
}

// Record adds a decision, which the caller no longer changes: any but a plain accept that Accepted
// does not want. It never waits: if the queue is full the decision is dropped and counted.
func (r *Recorder) Record(d *Decision) {
	r.tally.count(d)
	size := d.size()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(r.queue) >= queueRows || r.bytes+size > queueBytes {
		r.stats.Dropped++
		return
	}
	r.queue = append(r.queue, d)
	r.bytes += size
	r.recorded++
	if n := len(r.queue); n == 1 || n == burstRows || n == batchRows {
		r.kick()
	}
}

// kick wakes the writer.
func (r *Recorder) kick() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// size returns about how much memory a decision takes.
func (d *Decision) size() int {
	n := 512 + len(d.Helo) + len(d.Sender) + len(d.MessageID) + len(d.Entry) + len(d.Reason) + len(d.Reply)
	for _, s := range d.Recipients {
		n += len(s) + 16
	}
	for _, s := range d.HeaderSenders {
		n += len(s) + 16
	}
	for _, a := range d.Attrs {
		n += len(a.Key) + len(a.Value) + 32
	}
	return n
}

// followed is the number of rows that may wait for a follower.
const followed = 256

// Subscribe returns a channel of the rows that are written from now on, until stop. A reader that
// is too slow misses rows. Nobody may change what the rows refer to.
func (r *Recorder) Subscribe() (c <-chan Decision, stop func()) {
	follower := make(chan Decision, followed)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.followers[follower] = struct{}{}
	return follower, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if _, ok := r.followers[follower]; ok {
			delete(r.followers, follower)
			close(follower)
		}
	}
}

// publish gives rows to the followers.
func (r *Recorder) publish(rows []*Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for follower := range r.followers {
		for _, d := range rows {
			select {
			case follower <- *d:
			default:
			}
		}
	}
}

// Stats returns what the Recorder has done and keeps.
func (r *Recorder) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Queued = int(r.recorded - r.settled)
	return s
}

// Errors of Sync.
var (
	errLost   = errors.New("decisions were dropped")
	errClosed = errors.New("the history is closed")
)

// Sync waits until what was recorded before it is committed, in the totals, too.
func (r *Recorder) Sync(ctx context.Context) error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return errClosed
	}
	w := waiter{r.recorded, r.lost, make(chan error, 1)}
	r.waiters = append(r.waiters, w)
	r.mu.Unlock()
	r.kick()
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close writes what waits, and ends the Recorder. If the history stands still, what waits
// is lost.
func (r *Recorder) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.kick()
	<-r.ended
	r.mu.Lock()
	defer r.mu.Unlock()
	for follower := range r.followers {
		delete(r.followers, follower)
		close(follower)
	}
	if r.stats.Err != "" {
		return errors.New(r.stats.Err)
	}
	return nil
}
