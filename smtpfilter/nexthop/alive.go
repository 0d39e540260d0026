package nexthop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"spamgate/smtpfilter/wire"
)

// Servers may take minutes for their reply to MAIL and RCPT: they call other
// servers back, query policy services and wait for DNS. A server that was stopped,
// or whose machine is gone, looks the same. Another connection tells them apart: a
// working server answers it at once. If all processes of a server are busy, nobody
// greets there either. But such a server still answers on the connections that it
// has, and a stopped one answers on none.

// errSilent reports a server that answers neither a command nor a new connection.
var errSilent = errors.New("silent, and a new connection is not answered")

// errSlow reports a server that is alive but has not answered one client's command
// in time. Its checks of that client may have taken too long.
var errSlow = errors.New("no reply in time")

// readSlowReply reads a reply that may take long. If the server has been silent for
// Timeouts.Suspect, it must show on another connection that it is alive, or the
// wait ends.
func (c *conn) readSlowReply(timeout time.Duration) (wire.Reply, error) {
	deadline := time.Now().Add(timeout)
	alive, err := c.awaitFirstByte(timeout)
	if err != nil {
		return wire.Reply{}, err
	}
	reply, err := c.readReply(time.Until(deadline))
	return reply, markSlow(alive, err)
}

// awaitFirstByte waits for the first byte of a reply. It checks whether the server
// is alive after Timeouts.Suspect of silence, then after twice as long each time,
// and returns the result of the last check. All errors but errSilent show at the
// next read.
func (c *conn) awaitFirstByte(timeout time.Duration) (alive bool, err error) {
	if c.alive == nil || c.timeouts.Suspect <= 0 {
		return false, nil
	}
	end := time.Now().Add(timeout)
	for silence := c.timeouts.Suspect; silence < time.Until(end); silence *= 2 {
		c.SetReadDeadline(time.Now().Add(silence))
		if _, err := c.replies.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
			return alive, nil
		}
		if err := c.alive(); err != nil {
			if quiet, _ := c.quiet(); !quiet {
				return alive, nil // it has answered meanwhile, or hung up
			}
			return false, fmt.Errorf("%w: %w", errSilent, err)
		}
		alive = true
	}
	return alive, nil
}

// markSlow adds errSlow to a timeout of a server that is alive.
func markSlow(alive bool, err error) error {
	if alive && errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%w: %w", errSlow, err)
	}
	return err
}

// aliveCheck is a check whether the server is alive. All who wait for a reply share
// one.
type aliveCheck struct {
	mu    sync.Mutex
	done  chan struct{} // closed at the end of the check; nil before the first
	err   error         // the result, once done is closed
	begun time.Time
	ended time.Time
}

// checkAlive connects to the server to check whether it answers at all, refusals
// included. A reply on any other connection meanwhile shows the same. A result that
// is younger than Timeouts.Suspect is used again. After Close it checks nothing:
// transactions that have begun go on.
func (s *SMTP) checkAlive(ctx context.Context) error {
	k := &s.aliveCheck
	k.mu.Lock()
	if k.done == nil || !k.ended.IsZero() && time.Since(k.ended) > s.config.Timeouts.Suspect {
		k.done, k.begun, k.ended = make(chan struct{}), time.Now(), time.Time{}
		if !s.startCheck(k.done) {
			k.err = nil
			close(k.done)
		}
	}
	done := k.done
	k.mu.Unlock()
	select {
	case <-done:
		k.mu.Lock()
		defer k.mu.Unlock()
		if s.lastReply.Load() >= k.begun.UnixNano() {
			return nil
		}
		return k.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// startCheck connects in the background, and closes done with the result in
// s.aliveCheck. It returns false after Close.
func (s *SMTP) startCheck(done chan struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.background.Go(func() {
		c, err := s.connectOnce(s.ctx, nil)
		if err == nil {
			s.release(c, false)
		}
		if !isAny(err, silences) || s.ctx.Err() != nil {
			err = nil
		}
		s.aliveCheck.mu.Lock()
		defer s.aliveCheck.mu.Unlock()
		s.aliveCheck.err, s.aliveCheck.ended = err, time.Now()
		close(done)
	})
	return true
}

// silences are the errors of connectOnce if nobody answers. A server with a bad
// certificate or nonsensical replies is alive.
var silences = []error{errConnect, os.ErrDeadlineExceeded, context.DeadlineExceeded,
	io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE}

// isAny reports whether err is one of several errors.
func isAny(err error, targets []error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}
