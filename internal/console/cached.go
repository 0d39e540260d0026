package console

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"
)

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

	mu     sync.Mutex
	last   *T
	at     time.Time     // when it was asked for
	asking chan struct{} // closed when the answer is there; nil: nobody asks
}

// get returns the answer as of now or a little earlier, and when that was; nil if the first one is
// not there yet.
func (c *cached[T]) get(now time.Time) (*T, time.Time) {
	c.mu.Lock()
	if c.last != nil && now.Sub(c.at).Abs() < c.fresh {
		defer c.mu.Unlock()
		return c.last, c.at
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
	return c.last, c.at
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
			c.last, c.at = answer, now
		}
		close(done)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), cachedLimit)
	defer cancel()
	said := c.ask(ctx)
	answer = &said
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
