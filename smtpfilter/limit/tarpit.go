package limit

import (
	"context"
	"time"
)

// Tarpit holds up clients that deserve it, and not many at a time: each costs a
// connection. A nil Tarpit holds nobody.
type Tarpit struct{ places chan struct{} }

// NewTarpit makes a Tarpit that holds up to most clients at a time.
func NewTarpit(most int) *Tarpit { return &Tarpit{make(chan struct{}, max(0, most))} }

// Wait holds a client for a time, and reports whether it did. It returns false
// at once when all places are taken, and early when the context ends or gone,
// which may be nil, is closed.
func (t *Tarpit) Wait(ctx context.Context, d time.Duration, gone <-chan struct{}) bool {
	if t == nil || d <= 0 {
		return false
	}
	select {
	case t.places <- struct{}{}:
		defer func() { <-t.places }()
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
