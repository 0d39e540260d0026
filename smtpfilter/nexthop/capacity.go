package nexthop

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"
)

// Servers limit how many connections they have (Exim: 20, smtp_accept_max) and how
// many messages they accept on each. This file ends kept connections in time.

// errGreeting is wrapped by the error for a refusal in the greeting.
var errGreeting = errors.New("greeting refused")

// isFull reports whether an error says that the server accepts no more connections.
func isFull(err error) bool {
	var refused *ReplyError
	return errors.Is(err, errGreeting) && errors.As(err, &refused) && refused.Reply.Code == codeClosing
}

// fullWaits are the pauses before each attempt to connect to a server that was full
// and got a connection back. It may count that one until the process that had it
// has ended.
var fullWaits = [...]time.Duration{0, 100 * time.Millisecond, 400 * time.Millisecond}

// staleCount is how long a server may count a connection that has ended.
const staleCount = 2 * time.Second

// noteClosing notes that a connection is about to end. A busy server may answer a
// new connection before it notices that.
func (s *SMTP) noteClosing() { s.lastClose.Store(time.Now().UnixNano()) }

// connect opens a connection like connectOnce. If the server is full, connect ends
// the connection that has been idle for longest, and tries again. For a client it
// also tries again if a connection has ended a moment ago, or is about to end: the
// server may still count it.
func (s *SMTP) connect(ctx context.Context, client *Client) (*conn, error) {
	c, err := s.connectOnce(ctx, client)
	if !isFull(err) {
		return c, err
	}
	evicted := s.evictIdle()
	closedLately := client != nil && time.Since(time.Unix(0, s.lastClose.Load())) < staleCount
	if !evicted && !closedLately {
		return c, err
	}
	s.log.Debug("next hop has no room for a connection, trying again", "next_hop", s.String(), "gave_up_a_kept_one", evicted, "error", err)
	for _, wait := range fullWaits {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if c, err = s.connectOnce(ctx, client); !isFull(err) {
			break
		}
	}
	return c, err
}

// evictIdle ends the connection that has been idle for longest, and waits until the
// server has closed it. It returns false if none is kept.
func (s *SMTP) evictIdle() bool {
	s.mu.Lock()
	if len(s.idle) == 0 {
		s.mu.Unlock()
		return false
	}
	c := s.removeIdle(0)
	s.mu.Unlock()
	defer c.Close()
	if c.send("QUIT\r\n") == nil {
		c.SetReadDeadline(time.Now().Add(s.config.Timeouts.Quit))
		io.Copy(io.Discard, io.LimitReader(c.replies, replyBuffer))
	}
	return true
}

// atMessageLimit reports whether a connection has carried as many messages as it
// may.
func (s *SMTP) atMessageLimit(c *conn) bool {
	limit := s.config.MessagesPerConnection
	if limit == 0 && c.greetsAsExim() {
		limit = eximMessages
	}
	mails := c.offers.Limit("MAILMAX")
	return limit > 0 && c.messages >= limit || mails > 0 && int64(c.mails) >= mails
}

// eximMessages is Exim's default for smtp_accept_queue_per_connection. Exim accepts
// more messages on a connection, but leaves them in its queue until the next queue
// run.
const eximMessages = 10

// greetsAsExim reports whether the greeting has the word "Exim", as in Exim's
// default smtp_banner.
func (c *conn) greetsAsExim() bool {
	return slices.Contains(strings.Fields(c.greetingText()), "Exim")
}

// greetingText returns the first line of the greeting without its code.
func (c *conn) greetingText() string {
	if len(c.greeting.Lines) == 0 {
		return ""
	}
	return c.greeting.Lines[0]
}

// ofOneClient reports whether a connection can only carry the mail of one client's
// connection to us, because the next hop has its port.
func (s *SMTP) ofOneClient(c *conn) bool {
	return c.proxied != (endpoints{}) || c.xclientSent && !c.acceptsXCLIENTAgain() && c.acceptsAttribute("PORT")
}

// setClient notes whose mail a connection carries. Without a port another connection
// of the same client may have the same identity, and use it.
func (c *conn) setClient(client *Client) {
	c.gone = nil
	if client.Addr.Port() != 0 {
		c.gone = client.Gone
	}
}

// closeForGone ends a kept connection whose client has left.
func (s *SMTP) closeForGone(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.idle, c); i >= 0 && c.gone != nil && c.gone.Err() != nil {
		s.startQuit(s.removeIdle(i))
	}
}
