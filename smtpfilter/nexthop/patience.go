package nexthop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"spamgate/smtpfilter/wire"
)

// Servers may take minutes for their reply to MAIL and RCPT: they call other
// servers back, ask policy services and wait for DNS. One that was stopped, or whose
// machine is gone, looks the same. What tells them apart is another connection,
// which a server that works answers in no time. If all its processes are busy, it does not
// either: the kernel takes the connection, and nobody greets. But such a server goes on
// answering on connections that it has, and one that was stopped answers on none.

// errSilent is about a server that answers neither a command nor a new connection.
var errSilent = errors.New("silent, and a new connection is not answered")

// errSlow is about a server that is there, and has not answered one client's command
// in time. It may have looked into that client for too long.
var errSlow = errors.New("no reply in time")

// readPatiently is readReply for a reply that may take long. If the server has been
// silent for Timeouts.Suspect, it must show over another connection that it is
// there, or the wait ends.
func (c *conn) readPatiently(timeout time.Duration) (wire.Reply, error) {
	deadline := time.Now().Add(timeout)
	there, err := c.awaitReply(timeout)
	if err != nil {
		return wire.Reply{}, err
	}
	reply, err := c.readReply(time.Until(deadline))
	return reply, slow(there, err)
}

// awaitReply waits for the first byte of a reply, and asks whether the server is there
// after Timeouts.Suspect of silence, then after twice as long each time. It reports whether
// the server was there when it was asked last. Other errors than its own show at the next
// read.
func (c *conn) awaitReply(timeout time.Duration) (there bool, err error) {
	if c.stillThere == nil || c.timeouts.Suspect <= 0 {
		return false, nil
	}
	end := time.Now().Add(timeout)
	for silence := c.timeouts.Suspect; silence < time.Until(end); silence *= 2 {
		c.SetReadDeadline(time.Now().Add(silence))
		if _, err := c.replies.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
			return there, nil
		}
		if err := c.stillThere(); err != nil {
			if quiet, _ := c.quiet(); !quiet {
				return there, nil // it has answered meanwhile, or hung up
			}
			return false, fmt.Errorf("%w: %w", errSilent, err)
		}
		there = true
	}
	return there, nil
}

// slow marks a time-out of a server that is there.
func slow(there bool, err error) error {
	if there && errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%w: %w", errSlow, err)
	}
	return err
}

// check is the question whether a server is there, which all who wait for it share.
type check struct {
	mu    sync.Mutex
	done  chan struct{} // closed when there is an answer; nil before the first
	err   error         // the answer, once done is closed
	begun time.Time     // when it was asked
	at    time.Time     // when the answer came
}

// askStillThere asks the server over a new connection whether it is there: whatever it
// says there says so, and so does a reply on any other connection meanwhile. An answer
// that is younger than Timeouts.Suspect is used again. An error says that there was no
// answer. A target that is closed asks nobody: what was begun before goes on.
func (s *SMTP) askStillThere(ctx context.Context) error {
	k := &s.check
	k.mu.Lock()
	over := false
	if k.done != nil {
		select {
		case <-k.done:
			over = time.Since(k.at) > s.config.Timeouts.Suspect
		default:
		}
	}
	if k.done == nil || over {
		k.done, k.begun = make(chan struct{}), time.Now()
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
		if s.answered.Load() >= k.begun.UnixNano() {
			return nil
		}
		return k.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// startCheck connects in the background, and closes done with the answer in
// s.check. It reports false if the target is closed.
func (s *SMTP) startCheck(done chan struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.background.Add(1)
	go func() {
		defer s.background.Done()
		c, err := s.connectOnce(s.ctx, nil)
		if err == nil {
			s.release(c, false)
		}
		if !isSilence(err) || s.ctx.Err() != nil {
			err = nil
		}
		s.check.mu.Lock()
		defer s.check.mu.Unlock()
		s.check.err, s.check.at = err, time.Now()
		close(done)
	}()
	return true
}

// isSilence reports whether an error of connectOnce says that nobody has answered. A server
// whose certificate is bad, or that makes no sense, is there.
func isSilence(err error) bool {
	for _, silence := range []error{errConnect, os.ErrDeadlineExceeded, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, silence) {
			return true
		}
	}
	return false
}
