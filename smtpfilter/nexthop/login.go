package nexthop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"spamgate/smtpfilter/wire"
)

// Codes of RFC 4954, section 4.
const (
	codeLoggedIn  = 235
	codeChallenge = 334
)

// maxAuthRounds is the number of challenges in one AUTH exchange. No mechanism in
// use has more than five (GSSAPI).
const maxAuthRounds = 20

// endlessAuth answers a client whose AUTH exchange does not end. It is a reply and
// not an error, so that one client cannot have the next hop taken for down.
var endlessAuth = wire.NewReply(554, "5.5.0 Authentication ended: too many challenges")

// Authenticate hands a client's AUTH command on. The client's connection to the
// next hop is told its client like any other, and ends with the Login; where the
// next hop does not let the client in, at once. Where it does not offer AUTH to
// the client, the error wraps ErrNotOffered. After 20 challenges the connection is
// closed and the reply is 554.
//
// What the client says is in no error and no log. It may be in the reply, if the
// next hop repeats it there.
func (s *SMTP) Authenticate(ctx context.Context, client Client, args string, ask func(wire.Reply) (string, error)) (Login, wire.Reply, error) {
	if s.isClosed() {
		return nil, wire.Reply{}, fmt.Errorf("next hop %s: %w", s, ErrClosed)
	}
	c, err := s.connect(ctx, &client)
	if err != nil {
		s.known.health.noteFailure(ctx, err)
		return nil, wire.Reply{}, fmt.Errorf("next hop %s: %w", s, err)
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	endless := false
	reply, err := s.identify(ctx, c, &client)
	if err == nil && reply.IsZero() {
		reply, endless, err = c.authenticate(args, ask)
	}
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		c.Close()
		return nil, wire.Reply{}, fmt.Errorf("next hop %s: AUTH: %w", s, err)
	}
	if reply.Code != codeLoggedIn {
		if reply.Code == codeClosing || endless {
			c.Close()
		} else {
			s.dismiss(c)
		}
		if endless {
			s.log.Warn("AUTH ended after too many challenges", "next_hop", s.String(), "challenges", maxAuthRounds)
		}
		return nil, reply, nil
	}
	l := &login{hop: s, conn: c}
	c.login = l
	return l, reply, nil
}

// authenticate carries out the exchange and returns the last reply. Endless reports
// whether that is endlessAuth: the next hop waits for another answer.
func (c *conn) authenticate(args string, ask func(wire.Reply) (string, error)) (last wire.Reply, endless bool, err error) {
	if !c.offers.Has("AUTH") {
		return wire.Reply{}, false, notOffered("AUTH")
	}
	c.inAuth = true
	defer func() { c.inAuth = false }()
	line := "AUTH " + args
	for challenges := 0; ; challenges++ {
		if strings.ContainsAny(line, "\r\n\x00") {
			return wire.Reply{}, false, errors.New("control bytes in what the client said")
		}
		reply, err := c.ask(line, c.timeouts.Mail, codeChallenge)
		if err == nil && reply.Positive() && reply.Code != codeLoggedIn {
			err = wire.ErrBadReply
		}
		if err != nil {
			return wire.Reply{}, false, withoutBytes(err)
		}
		if reply.Code != codeChallenge {
			return reply, false, nil
		}
		if challenges == maxAuthRounds {
			return endlessAuth, true, nil
		}
		if line, err = ask(reply); err != nil {
			return wire.Reply{}, false, err
		}
	}
}

// withoutBytes is an error without the bytes that the next hop has sent, among which may
// be what it was sent.
func withoutBytes(err error) error {
	for _, known := range []error{errUnasked, wire.ErrBadReply, io.ErrUnexpectedEOF} {
		if errors.Is(err, known) {
			return known
		}
	}
	return err
}

// dismiss says QUIT on a connection, in the background, or closes it where the
// target is closed.
func (s *SMTP) dismiss(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.Close()
		return
	}
	s.startQuit(c)
}

// login is a Login over SMTP.
type login struct {
	hop *SMTP

	mu     sync.Mutex
	conn   *conn // nil while a transaction has it, and once it has ended
	open   bool  // its last transaction was not ended there
	closed bool
}

// Begin starts a transaction on the login's connection. What the envelope says of
// the client changes nothing about the connection: it is told to XFORWARD alone.
func (l *login) Begin(env Envelope) Transaction {
	t := newTransaction(l.hop, env)
	t.login = l
	return t
}

// Close ends the connection, or has the transaction under way end it.
func (l *login) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.conn != nil {
		l.hop.dismiss(l.conn)
		l.conn = nil
	}
	return nil
}

// errLoggedOut is about a login whose connection cannot be had.
var errLoggedOut = errors.New("the client's own connection has ended, or is in use")

// take gives the connection to a transaction. The one before is reset where it
// was not ended.
func (l *login) take(ctx context.Context) (*conn, error) {
	l.mu.Lock()
	c, open := l.conn, l.open
	l.conn, l.open = nil, false
	l.mu.Unlock()
	if c == nil {
		return nil, errLoggedOut
	}
	if still, err := c.quiet(); !still {
		c.Close()
		if err == nil {
			err = errUnasked
		}
		return nil, fmt.Errorf("%w: %w", errLoggedOut, err)
	}
	if !open {
		return c, nil
	}
	c.alive = func() error { return l.hop.checkAlive(ctx) }
	stop := context.AfterFunc(ctx, func() { c.Close() })
	err := c.reset(c.timeouts.Mail)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// release takes the connection back after a transaction, which is still open
// there or not.
func (l *login) release(c *conn, open bool) {
	c.alive = nil // it is the transaction's, which is over
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		l.hop.dismiss(c)
		return
	}
	l.conn, l.open = c, open
}
