package console

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// work is a computation that takes too long for a page, such as the comparison of long lists.
// It is begun by a form; the page shows its state, and then its result.
type work struct {
	began, ended time.Time // ended is zero while it runs
	result       any
	err          error
}

// Done reports whether the work has ended.
func (w *work) Done() bool { return w != nil && !w.ended.IsZero() }

// Runs reports whether the work goes on.
func (w *work) Runs() bool { return w != nil && w.ended.IsZero() }

// Began and Ended return when.
func (w *work) Began() time.Time { return w.began }
func (w *work) Ended() time.Time { return w.ended }

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
		now := *w
		return &now
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
		delete(s.all, slices.MinFunc(slices.Collect(maps.Keys(s.all)), func(a, b string) int { return s.all[a].began.Compare(s.all[b].began) }))
	}
	w := &work{began: now()}
	s.all[key], s.busy = w, true
	go func() {
		ctx, stop := context.WithTimeout(ctx, workTime)
		defer stop()
		result, err := recovered(ctx, do)
		s.mu.Lock()
		defer s.mu.Unlock()
		w.result, w.err, w.ended, s.busy = result, err, now(), false
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
	w := &work{began: x.console.Now()}
	w.result, w.err = do(x.r.Context())
	w.ended = x.console.Now()
	return w
}

// startWork begins the work of a page, and shows that.
func (x *exchange) startWork(key, path string, do func(context.Context) (any, error)) error {
	if err := x.console.works.begin(x.console.ending, key, x.console.Now, do); err != nil {
		return err
	}
	return x.redirect(path)
}
