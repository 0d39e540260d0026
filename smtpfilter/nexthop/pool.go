package nexthop

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// take gives a connection: the kept one that was used last, where there is one
// and fresh is not asked for, else a new one. A closed target keeps none, but
// still connects: for transactions that were begun before.
func (s *SMTP) take(ctx context.Context, fresh bool) (*conn, error) {
	for {
		s.mu.Lock()
		n := len(s.idle)
		if fresh || n == 0 {
			s.mu.Unlock()
			return s.connect(ctx)
		}
		c := s.idle[n-1]
		s.idle[n-1] = nil
		s.idle = s.idle[:n-1]
		s.mu.Unlock()

		quiet, err := c.quiet()
		if quiet {
			return c, nil
		}
		c.Close()
		s.log.Debug("kept connection to the next hop dropped", "next_hop", s.String(), "error", err, "unasked_bytes", err == nil)
	}
}

// release takes a connection back after a transaction. One whose transaction is
// still open there is reset first, in the background.
func (s *SMTP) release(c *conn, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		c.Close()
	case !s.config.Reuse, c.wear >= maxWear:
		s.startQuit(c)
	case open:
		s.background.Add(1)
		go func() {
			defer s.background.Done()
			s.rset(c)
		}()
	default:
		s.keep(c)
	}
}

// keep makes a connection idle. The caller holds s.mu.
func (s *SMTP) keep(c *conn) {
	if len(s.idle) >= s.config.MaxIdle {
		s.startQuit(c)
		return
	}
	c.reused = true
	c.idleSince = time.Now()
	s.idle = append(s.idle, c)
}

// rset ends the transaction on c and keeps it.
func (s *SMTP) rset(c *conn) {
	c.wear++
	reply, err := c.ask("RSET", s.config.Timeouts.Quit, 0)
	if err == nil && !reply.Positive() {
		err = fmt.Errorf("RSET refused: %s", reply)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || s.closed {
		c.Close()
		return
	}
	s.keep(c)
}

// startQuit says QUIT and closes the connection, in the background. The caller
// holds s.mu, and s is not closed.
func (s *SMTP) startQuit(c *conn) {
	s.background.Add(1)
	go func() {
		defer s.background.Done()
		c.lines.timeout = s.config.Timeouts.Quit
		c.client.Quit() // its failure changes nothing: the connection is closed
		c.Close()
	}()
}

// expire ends connections that have been idle too long, until Close.
func (s *SMTP) expire() {
	defer s.background.Done()
	ticker := time.NewTicker(max(s.config.IdleTimeout/2, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-s.done:
			return
		case now := <-ticker.C:
			s.expireBefore(now.Add(-s.config.IdleTimeout))
		}
	}
}

// expireBefore ends the connections that are idle since before t. They are the
// first in s.idle, which is in the order of idleSince.
func (s *SMTP) expireBefore(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	n := 0
	for n < len(s.idle) && s.idle[n].idleSince.Before(t) {
		s.startQuit(s.idle[n])
		n++
	}
	s.idle = slices.Delete(s.idle, 0, n)
}
