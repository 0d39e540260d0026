package nexthop

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// take gives a connection for a client: the kept one that was used last of those
// that will do, where fresh is not asked for, else a new one. A closed target
// keeps none, but still connects: for transactions that were begun before.
func (s *SMTP) take(ctx context.Context, client *Client, fresh bool) (*conn, error) {
	var id identity
	if s.tellsXCLIENT() {
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

// takeIdle takes a kept connection, with preference for one that knows the client; nil
// where none will do. The identity is the client's.
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

// removeIdle takes a kept connection out. The caller holds s.mu.
func (s *SMTP) removeIdle(i int) *conn {
	c := s.idle[i]
	s.idle = slices.Delete(s.idle, i, i+1)
	if c.unheed != nil {
		c.unheed()
		c.unheed = nil
	}
	return c
}

// fits reports whether c may carry mail of a client, and whether that takes no
// XCLIENT more.
func (s *SMTP) fits(c *conn, client *Client, id *identity) (fits, exactly bool) {
	switch {
	case s.config.Proxy != 0 && c.proxied != endpointsOf(client):
		return false, false
	case !s.tellsXCLIENT():
		return true, true
	case c.knows(id):
		return true, true
	case c.told:
		return c.canTellAnother(), false
	}
	if c.offers.Has("XCLIENT") {
		return true, false
	}
	fits = !s.mustTellXCLIENT()
	return fits, fits
}

// release takes a connection back after a transaction. One whose transaction is
// still open there is reset first, in the background.
func (s *SMTP) release(c *conn, open bool) {
	if c.login != nil {
		c.login.release(c, open)
		return
	}
	c.stillThere = nil // nobody waits for what is said from now on
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		c.Close()
	case !s.config.Reuse, c.wear >= maxWear, s.spent(c), s.config.Proxy != 0 && c.proxied == endpoints{}:
		s.startQuit(c)
	case open:
		if s.private(c) {
			s.noteEnding() // with its client, which has left perhaps
		}
		s.background.Add(1)
		go func() {
			defer s.background.Done()
			s.rset(c)
		}()
	default:
		s.keep(c)
	}
}

// keep makes a connection idle, in place of the one that has been for longest
// where they are too many: its client may never come back, this one's has just
// been here. The caller holds s.mu.
//
// One that can carry the mail of a single client's connection to us ends with that.
func (s *SMTP) keep(c *conn) {
	if c.gone != nil && s.private(c) {
		if c.gone.Err() != nil {
			s.startQuit(c)
			return
		}
		c.unheed = context.AfterFunc(c.gone, func() { s.leave(c) })
	}
	if len(s.idle) >= s.config.MaxIdle {
		s.startQuit(s.removeIdle(0))
	}
	c.reused = true
	c.idleSince = time.Now()
	s.idle = append(s.idle, c)
}

// rset ends the transaction on c and keeps it.
func (s *SMTP) rset(c *conn) {
	err := c.reset(s.config.Timeouts.Quit)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || s.closed {
		c.Close()
		return
	}
	s.keep(c)
}

// reset ends a transaction.
func (c *conn) reset(timeout time.Duration) error {
	c.wear++
	reply, err := c.ask("RSET", timeout, 0)
	if err == nil && !reply.Positive() {
		err = fmt.Errorf("RSET refused: %s", reply)
	}
	return err
}

// startQuit says QUIT and closes the connection, in the background. The caller
// holds s.mu, and s is not closed.
func (s *SMTP) startQuit(c *conn) {
	s.noteEnding()
	s.background.Add(1)
	go func() {
		defer s.background.Done()
		c.quit(s.config.Timeouts.Quit)
	}()
}

// expire ends connections that have been idle for IdleTimeout, until Close.
func (s *SMTP) expire() {
	defer s.background.Done()
	timer := time.NewTimer(s.config.IdleTimeout)
	defer timer.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-timer.C:
			timer.Reset(s.expireNow())
		}
	}
}

// expireNow ends the connections whose time is over, and returns how long it is
// until the next may be. They are the first in s.idle, which is in the order of
// idleSince.
func (s *SMTP) expireNow() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed && len(s.idle) > 0 {
		if left := s.config.IdleTimeout - time.Since(s.idle[0].idleSince); left > 0 {
			return left
		}
		s.startQuit(s.removeIdle(0))
	}
	return s.config.IdleTimeout // nothing that is kept from now on ends before
}
