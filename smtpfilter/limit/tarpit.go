package limit

import (
	"context"
	"time"
)

// Tarpit delays clients, a bounded number at a time because each one costs a
// connection. A nil Tarpit delays nobody.
type Tarpit struct{ slots chan struct{} }

// NewTarpit returns a Tarpit that delays up to maxClients clients at a time.
func NewTarpit(maxClients int) *Tarpit { return &Tarpit{make(chan struct{}, max(0, maxClients))} }

// Wait waits for d, and reports whether it did. It returns false at once if the
// Tarpit is full, and early if the context ends or gone is closed. Gone may be nil.
func (t *Tarpit) Wait(ctx context.Context, d time.Duration, gone <-chan struct{}) bool {
	if t == nil || d <= 0 {
		return false
	}
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	default:
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-gone:
	}
	return false
}
