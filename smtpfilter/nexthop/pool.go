package nexthop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// take returns a connection for a client: unless fresh is set, the suitable kept one
// that was used last, else a new one. A closed target still connects, for
// transactions that have begun.
func (s *SMTP) take(ctx context.Context, client *Client, fresh bool) (*conn, error) {
	var id identity
	if s.usesXCLIENT() {
		id = s.identityOf(client)
	}
	for {
		c := s.takeIdle(client, &id, fresh)
		if c == nil {
			return s.connect(ctx, client)
		}
		quiet, err := c.quiet()
		if quiet {
			return c, nil
		}
		c.Close()
		s.log.Debug("kept connection to the next hop dropped", "next_hop", s.String(), "error", err, "unasked_bytes", err == nil)
	}
}

// takeIdle returns a kept connection, preferably one that has the client's identity
// id already, or nil.
func (s *SMTP) takeIdle(client *Client, id *identity, fresh bool) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fresh {
		return nil
	}
	best := -1
	for i, c := range slices.Backward(s.idle) {
		fits, exactly := s.fits(c, client, id)
		if fits && (exactly || best < 0) {
			best = i
		}
		if exactly {
			break
		}
	}
	if best < 0 {
		return nil
	}
	return s.removeIdle(best)
}

// removeIdle removes a kept connection from s.idle. The caller holds s.mu.
func (s *SMTP) removeIdle(i int) *conn {
	c := s.idle[i]
	s.idle = slices.Delete(s.idle, i, i+1)
	if c.stopWatch != nil {
		c.stopWatch()
		c.stopWatch = nil
	}
	return c
}

// fits reports whether c may carry mail of a client, and whether it needs no other
// XCLIENT for that.
func (s *SMTP) fits(c *conn, client *Client, id *identity) (fits, exactly bool) {
	switch {
	case s.config.Proxy != 0 && c.proxied != endpointsOf(client):
		return false, false
	case !s.usesXCLIENT():
		return true, true
	case c.hasIdentity(id):
		return true, true
	case c.xclientSent:
		return c.acceptsXCLIENTAgain(), false
	}
	if c.offers.Has("XCLIENT") {
		return true, false
	}
	fits = !s.needsXCLIENT()
	return fits, fits
}

// release takes a connection back after a transaction. If the transaction is still
// open at the server, release resets it in the background.
func (s *SMTP) release(c *conn, open bool) {
	if c.login != nil {
		c.login.release(c, open)
		return
	}
	c.alive = nil // nobody waits for later replies
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		c.Close()
	case !s.config.Reuse, c.errorCount >= maxErrors, s.atMessageLimit(c), s.config.Proxy != 0 && c.proxied == endpoints{}:
		s.startQuit(c)
	case open:
		if s.ofOneClient(c) {
			s.noteClosing() // its client may have left
		}
		s.background.Go(func() { s.rset(c) })
	default:
		s.keep(c)
	}
}

// keep makes a connection idle. If there are too many, it ends the one that has
// been idle for longest: this client is likelier to come back. A connection for one
// client only ends when the client's connection to us does. The caller holds s.mu.
func (s *SMTP) keep(c *conn) {
	if c.gone != nil && s.ofOneClient(c) {
		if c.gone.Err() != nil {
			s.startQuit(c)
			return
		}
		c.stopWatch = context.AfterFunc(c.gone, func() { s.closeForGone(c) })
	}
	if len(s.idle) >= s.config.MaxIdle {
		s.startQuit(s.removeIdle(0))
	}
	c.reused = true
	c.idleSince = time.Now()
	s.idle = append(s.idle, c)
}

// rset resets c and keeps it.
func (s *SMTP) rset(c *conn) {
	err := c.reset(s.config.Timeouts.Quit)
	if errors.Is(err, ErrSession) {
		s.noteSession(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || s.closed {
		c.Close()
		return
	}
	s.keep(c)
}

// reset ends the transaction at the server.
func (c *conn) reset(timeout time.Duration) error {
	c.errorCount++
	reply, err := c.ask("RSET", timeout, 0)
	if err == nil && reply.Permanent() {
		err = fmt.Errorf("%w: RSET refused: %s", ErrSession, quote(reply))
	} else if err == nil && !reply.Positive() {
		err = fmt.Errorf("RSET refused: %s", reply)
	}
	return err
}

// startQuit quits a connection in the background. The caller holds s.mu, and s is
// not closed.
func (s *SMTP) startQuit(c *conn) {
	s.noteClosing()
	s.background.Go(func() { c.quit(s.config.Timeouts.Quit) })
}

// expire ends connections that have been idle for IdleTimeout, until Close.
func (s *SMTP) expire() {
	timer := time.NewTimer(s.config.IdleTimeout)
	defer timer.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-timer.C:
			timer.Reset(s.expireNow())
		}
	}
}

// expireNow ends the connections that have been idle for IdleTimeout, which are the
// first in s.idle. It returns the time until the next one expires.
func (s *SMTP) expireNow() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed && len(s.idle) > 0 {
		if left := s.config.IdleTimeout - time.Since(s.idle[0].idleSince); left > 0 {
			return left
		}
		s.startQuit(s.removeIdle(0))
	}
	return s.config.IdleTimeout // no connection that is kept later expires earlier
}
