package console

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"spamgate/internal/admin"
)

const (
	healthFresh = 15 * time.Second      // after that the gate is asked again
	healthWait  = 50 * time.Millisecond // of a page for the answer
	healthLimit = 20 * time.Second      // for the answer
)

// healthCache keeps the gate's health, since asking may take seconds: it tries next hops.
type healthCache struct {
	ask func(context.Context) admin.Health
	log *slog.Logger

	mu     sync.Mutex
	last   *admin.Health
	asking chan struct{} // closed when the answer is there; nil: nobody asks
}

// get returns the gate's health as of now or a little earlier; nil if the first answer is not
// there yet.
func (h *healthCache) get(now time.Time) *admin.Health {
	h.mu.Lock()
	if h.last != nil && now.Sub(h.last.Time).Abs() < healthFresh {
		defer h.mu.Unlock()
		return h.last
	}
	if h.asking == nil {
		h.asking = make(chan struct{})
		go h.refresh(h.asking)
	}
	asking := h.asking
	h.mu.Unlock()
	select {
	case <-asking:
	case <-time.After(healthWait):
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// refresh asks the gate. Nobody waits for this goroutine, so that a panic in it would end the
// gate: it is logged, and the next page asks again.
func (h *healthCache) refresh(done chan struct{}) {
	var answer *admin.Health
	defer func() {
		if p := recover(); p != nil {
			h.log.Error("console: asking for the gate's health failed", "error", fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.asking = nil; answer != nil {
			h.last = answer
		}
		close(done)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), healthLimit)
	defer cancel()
	now := h.ask(ctx)
	answer = &now
}

// wait returns the gate's health as get does, but waits for the first answer, and for one that is
// fresh.
func (h *healthCache) wait(ctx context.Context, now time.Time) (admin.Health, error) {
	h.get(now)
	h.mu.Lock()
	asking := h.asking
	h.mu.Unlock()
	if asking != nil {
		select {
		case <-asking:
		case <-ctx.Done():
			return admin.Health{}, context.Cause(ctx)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last == nil {
		return admin.Health{}, failure{http.StatusServiceUnavailable, "The gate could not tell its health: its log says why."}
	}
	return *h.last, nil
}
