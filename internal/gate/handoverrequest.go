package gate

import (
	"context"
	"fmt"
	"os"
	"time"

	"spamgate/internal/admin"
	"spamgate/internal/version"
)

// handoverRequest is a request on the admin socket for a handover. Its methods do nothing on
// nil, which stands for SIGUSR2.
type handoverRequest struct {
	ctx   context.Context // ends when nobody waits any more
	limit time.Duration   // until the successor must serve
	began time.Time
	done  chan<- handoverResult // has room for the result
}

// handoverResult is the answer to a handoverRequest.
type handoverResult struct {
	admin.HandedOver
	err error
}

// Handover implements admin.Gate.
func (g *adminHandler) Handover(ctx context.Context, limit time.Duration) (admin.HandedOver, error) {
	if limit == 0 {
		limit = readyLimit
	}
	done := make(chan handoverResult, 1)
	select {
	case g.handovers <- &handoverRequest{ctx, limit, time.Now(), done}:
		r := <-done
		return r.HandedOver, r.err
	case <-g.ending:
		return admin.HandedOver{}, errEnding
	case <-ctx.Done():
		return admin.HandedOver{}, ctx.Err()
	}
}

var errEnding = fmt.Errorf("%w any more: it is ending", admin.ErrNotRunning)

// fail answers that this process continues, or ends without a successor.
func (r *handoverRequest) fail(err error) {
	if r != nil {
		r.done <- handoverResult{err: err}
	}
}

// succeed answers that the process pid serves.
func (r *handoverRequest) succeed(pid int, g *gate) {
	if r == nil {
		return
	}
	r.done <- handoverResult{HandedOver: admin.HandedOver{
		Old:        admin.Process{PID: os.Getpid(), Version: version.Number},
		New:        admin.Process{PID: pid},
		Seconds:    time.Since(r.began).Seconds(),
		Sessions:   g.metrics.openSessions.Load(),
		EndsWithin: (g.retirementGrace() + g.config.Listen.ShutdownTimeout).Seconds(),
	}}
}
