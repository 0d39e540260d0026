package nexthop

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Servers bound how many connections they have (Exim: 20, smtp_accept_max) and how
// many messages they take on one. This file is about kept connections that are given
// up in time.

// errGreeting is wrapped by the error about a refusal in the greeting.
var errGreeting = errors.New("greeting refused")

// full reports whether an error says that the server has no room for a connection.
func full(err error) bool {
	var refused *ReplyError
	return errors.Is(err, errGreeting) && errors.As(err, &refused) && refused.Reply.Code == codeClosing
}

// roomWaits are the pauses before each attempt to connect to a server that was full
// and got a connection back. It may count that until the process has ended that had
// it.
var roomWaits = [...]time.Duration{0, 100 * time.Millisecond, 400 * time.Millisecond}

// countedFor is how long a server may count a connection that has ended.
const countedFor = 2 * time.Second

// noteEnding notes that a connection is about to end. A busy server may take a while
// until it has taken notice of that, and answers a new one before.
func (s *SMTP) noteEnding() { s.ended.Store(time.Now().UnixNano()) }

// connect opens a connection for a client, or for ourselves if that is nil, up to
// the last reply to EHLO or HELO. If the server has no room, it gets back the
// connection that has been idle for longest, and is asked again. A client is worth
// asking again, too, if a connection has ended a moment ago, or is about to, which the
// server may still count.
func (s *SMTP) connect(ctx context.Context, client *Client) (*conn, error) {
	c, err := s.connectOnce(ctx, client)
	if !full(err) {
		return c, err
	}
	gaveUp := s.giveUpIdle()
	endedLately := client != nil && time.Since(time.Unix(0, s.ended.Load())) < countedFor
	if !gaveUp && !endedLately {
		return c, err
	}
	s.log.Debug("next hop has no room for a connection, asked again", "next_hop", s.String(), "gave_up_a_kept_one", gaveUp, "error", err)
	for _, wait := range roomWaits {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if c, err = s.connectOnce(ctx, client); !full(err) {
			break
		}
	}
	return c, err
}

// giveUpIdle ends the connection that has been idle for longest, and waits until the
// server has closed it. It reports false if none is kept.
func (s *SMTP) giveUpIdle() bool {
	s.mu.Lock()
	if len(s.idle) == 0 {
		s.mu.Unlock()
		return false
	}
	c := s.removeIdle(0)
	s.mu.Unlock()
	defer c.Close()
	timeout := s.config.Timeouts.Quit
	if c.send("QUIT\r\n") == nil {
		c.SetReadDeadline(time.Now().Add(timeout))
		io.Copy(io.Discard, io.LimitReader(c.replies, replyBuffer))
	}
	return true
}

// spent reports whether a connection has carried as many messages as it may.
func (s *SMTP) spent(c *conn) bool {
	limit := s.config.MessagesPerConnection
	if limit == 0 && c.greetsAsExim() {
		limit = eximMessages
	}
	mails := c.mailLimit()
	return limit > 0 && c.messages >= limit || mails > 0 && c.mails >= mails
}

// eximMessages is Exim's default for smtp_accept_queue_per_connection. It takes more
// messages than that on a connection, and leaves them in its queue until the next
// queue run.
const eximMessages = 10

// greetsAsExim reports whether the greeting has "Exim" for a word, as in Exim's
// default smtp_banner.
func (c *conn) greetsAsExim() bool {
	lines := c.greeting.Lines
	return len(lines) > 0 && slices.Contains(strings.Fields(lines[0]), "Exim")
}

// mailLimit returns the MAILMAX of the server's LIMITS (RFC 9422, section 4), 0
// without one.
func (c *conn) mailLimit() int {
	for _, l := range c.offers["LIMITS"] {
		if name, value, _ := strings.Cut(l, "="); strings.EqualFold(name, "MAILMAX") {
			n, _ := strconv.Atoi(value)
			return n
		}
	}
	return 0
}

// private reports whether a connection can carry nothing but the mail of one client's
// connection to us: the next hop knows its port.
func (s *SMTP) private(c *conn) bool {
	return c.proxied != (endpoints{}) || c.told && !c.canTellAnother() && c.takes("PORT")
}

// belongTo notes whose mail a connection carries. Without a port another connection
// of the same client may come with the same identity, and use it.
func (c *conn) belongTo(client *Client) {
	c.gone = nil
	if client.Addr.Port() != 0 {
		c.gone = client.Gone
	}
}

// leave ends a kept connection whose client has gone.
func (s *SMTP) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.idle, c); i >= 0 && c.gone != nil && c.gone.Err() != nil {
		s.startQuit(s.removeIdle(i))
	}
}
