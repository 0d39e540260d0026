package console

import (
	"context"
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

func (h *healthCache) refresh(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), healthLimit)
	defer cancel()
	answer := h.ask(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last, h.asking = &answer, nil
	close(done)
}
