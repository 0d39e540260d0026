package console

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// work is a computation that takes too long for a page, such as the comparison of long lists.
// It is begun by a form; the page shows its state, and then its result.
type work struct {
	Began, Ended time.Time // Ended is zero while it runs
	result       any
	err          error
}

// Done reports whether the work has ended.
func (w *work) Done() bool { return w != nil && !w.Ended.IsZero() }

// Runs reports whether the work goes on.
func (w *work) Runs() bool { return w != nil && w.Ended.IsZero() }

// resultOf returns what a work has computed, or why it could not; neither while it runs.
func resultOf[T any](w *work) (result T, why string) {
	if !w.Done() {
		return result, ""
	}
	if w.err != nil {
		why = w.err.Error()
	}
	result, _ = w.result.(T)
	return result, why
}

const (
	maxWork  = 20               // results that are kept
	workTime = 10 * time.Minute // for one
)

// works are the works by their key. One runs at a time: it takes all processors.
type works struct {
	mu   sync.Mutex
	all  map[string]*work
	busy bool
}

// get returns a work as it is now; nil if it was not begun, or is forgotten.
func (s *works) get(key string) *work {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.all[key]; w != nil {
		work := *w
		return &work
	}
	return nil
}

// begin begins a work, unless it runs already. It fails if another one runs.
func (s *works) begin(ctx context.Context, key string, now func() time.Time, do func(context.Context) (any, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.all[key]; w.Runs() {
		return nil
	}
	if s.busy {
		return conflict("The gate is comparing other lists. Try again when that has ended.")
	}
	if s.all == nil {
		s.all = map[string]*work{}
	}
	for len(s.all) >= maxWork {
		delete(s.all, slices.MinFunc(slices.Collect(maps.Keys(s.all)), func(a, b string) int { return s.all[a].Began.Compare(s.all[b].Began) }))
	}
	w := &work{Began: now()}
	s.all[key], s.busy = w, true
	go func() {
		ctx, stop := context.WithTimeout(ctx, workTime)
		defer stop()
		result, err := recovered(ctx, do)
		s.mu.Lock()
		defer s.mu.Unlock()
		w.result, w.err, w.Ended, s.busy = result, err, now(), false
	}()
	return nil
}

// recovered does a work. A panic is an error: it must not end the gate.
func recovered(ctx context.Context, do func(context.Context) (any, error)) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return do(ctx)
}

// inline is the number of entries up to which a page computes at once, in some milliseconds.
const inline = 10_000

// work returns the work of a page. One about few entries is done at once.
func (x *exchange) work(key string, entries int, do func(context.Context) (any, error)) *work {
	if entries > inline {
		return x.console.works.get(key)
	}
	w := &work{Began: x.console.Now()}
	w.result, w.err = do(x.r.Context())
	w.Ended = x.console.Now()
	return w
}

// startWork begins the work of a page, and shows that.
func (x *exchange) startWork(key, path string, do func(context.Context) (any, error)) error {
	if err := x.console.works.begin(x.console.ending, key, x.console.Now, do); err != nil {
		return err
	}
	return x.redirect(path)
}

const (
	healthFresh = 15 * time.Second      // the gate's health is that old at most
	fleetFresh  = 5 * time.Second       // the state of its fleet
	cachedWait  = 50 * time.Millisecond // of a page for an answer
	cachedLimit = 20 * time.Second      // for an answer
)

// cached keeps what the gate answers to a question that may take seconds: for its health it tries
// next hops, and for the state of its fleet it asks servers.
type cached[T any] struct {
	ask   func(context.Context) T
	what  string // it is about
	fresh time.Duration
	log   *slog.Logger

	mu      sync.Mutex
	last    *T
	instant time.Time     // when it was asked for
	asking  chan struct{} // closed when the answer is there; nil: nobody asks
}

// get returns the answer as of now or a little earlier, and when that was; nil if the first one is
// not there yet.
func (c *cached[T]) get(now time.Time) (*T, time.Time) {
	c.mu.Lock()
	if c.last != nil && now.Sub(c.instant).Abs() < c.fresh {
		defer c.mu.Unlock()
		return c.last, c.instant
	}
	if c.asking == nil {
		c.asking = make(chan struct{})
		go c.refresh(c.asking, now)
	}
	asking := c.asking
	c.mu.Unlock()
	select {
	case <-asking:
	case <-time.After(cachedWait):
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last, c.instant
}

// refresh asks the gate. Nobody waits for this goroutine, so that a panic in it would end the
// gate: it is logged, and the next page asks again.
func (c *cached[T]) refresh(done chan struct{}, now time.Time) {
	var answer *T
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("console: asking the gate failed", "about", c.what, "error", fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.asking = nil; answer != nil {
			c.last, c.instant = answer, now
		}
		close(done)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), cachedLimit)
	defer cancel()
	text := c.ask(ctx)
	answer = &text
}

// wait returns the answer as get does, but waits for the first one, and for one that is fresh.
func (c *cached[T]) wait(ctx context.Context, now time.Time) (answer T, err error) {
	c.get(now)
	c.mu.Lock()
	asking := c.asking
	c.mu.Unlock()
	if asking != nil {
		select {
		case <-asking:
		case <-ctx.Done():
			return answer, context.Cause(ctx)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		return answer, failure{http.StatusServiceUnavailable, "The gate could not tell its " + c.what + ": its log says why."}
	}
	return *c.last, nil
}

// Live views and other requests at once. Requests are bounded for the gate's memory: a page of the
// history may have some MiB.
const (
	streamsEach  = 4
	streamsAll   = 64
	requestsEach = 16
	requestsAll  = 32
)

// places bounds what may be under way at once, for an account and in all.
type places struct {
	each, all int

	mu    sync.Mutex
	taken map[string]int // by account
	sum   int
}

// enter takes a place. It reports false if all are taken; else leave frees the place.
func (p *places) enter(name string) (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sum >= p.all || p.taken[name] >= p.each {
		return nil, false
	}
	if p.taken == nil {
		p.taken = map[string]int{}
	}
	p.taken[name]++
	p.sum++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.sum--
		if p.taken[name]--; p.taken[name] == 0 {
			delete(p.taken, name)
		}
	}, true
}

// oncePerSecond bounds how often something is done.
type oncePerSecond struct{ last atomic.Int64 } // in ns since 1970

// due reports whether it was not done within the last second, and notes that it is done now.
func (o *oncePerSecond) due(now time.Time) bool {
	last := o.last.Load()
	since := now.UnixNano() - last
	return (since >= int64(time.Second) || since < 0) && o.last.CompareAndSwap(last, now.UnixNano())
}
