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

// maxAuthRounds limits the challenges in one AUTH exchange. No mechanism in use has
// more than five (GSSAPI).
const maxAuthRounds = 20

// errEndlessAuth reports an AUTH exchange with too many challenges.
var errEndlessAuth = errors.New("too many challenges")

// endlessAuth answers the client then. It is a reply and not an error, so that one
// client cannot take the next hop down.
var endlessAuth = wire.NewReply(554, "5.5.0 Authentication ended: too many challenges")

// Authenticate passes a client's AUTH command on, over a connection that has the
// client's identity and ends with the Login. If the login fails, it ends at once. If
// the next hop does not offer AUTH to the client, the error wraps ErrNotOffered.
// After 20 challenges the connection is closed and the reply is 554. If the server asks for
// STARTTLS, Authenticate begins again with it.
//
// No error and no log has what the client sent. The reply has it if the next hop
// repeats it there.
func (s *SMTP) Authenticate(ctx context.Context, client Client, args string, ask func(wire.Reply) (string, error)) (Login, wire.Reply, error) {
	if err := s.checkOpen(); err != nil {
		return nil, wire.Reply{}, err
	}
	c, err := s.connect(ctx, &client)
	if err != nil {
		s.known.health.noteFailure(ctx, err)
		s.noteFailed(err, StepLogin)
		return nil, wire.Reply{}, fmt.Errorf("next hop %s: %w", s, err)
	}
	var reply wire.Reply
	var gone error // the client's
	err = c.during(ctx, func() error {
		if reply, err = s.identify(ctx, c, &client); err == nil && reply.IsZero() {
			reply, err = c.authenticate(args, func(challenge wire.Reply) (line string, err error) {
				line, gone = ask(challenge)
				return line, gone
			})
		}
		return err
	})
	switch {
	case err == nil && c.wantsTLS(reply) && s.tlsMode() == TLSNone:
		_ = s.sessionError(c, "AUTH: ", reply) // the mode for the next connection
		s.dismiss(c)
		return s.Authenticate(ctx, client, args, ask)
	case err == errEndlessAuth:
		c.Close()
		s.log.Warn("AUTH ended after too many challenges", "next_hop", s.String(), "challenges", maxAuthRounds)
		return nil, endlessAuth, nil
	case err != nil:
		c.Close()
		if gone == nil {
			s.noteFailed(err, StepLogin)
		}
		return nil, wire.Reply{}, fmt.Errorf("next hop %s: AUTH: %w", s, err)
	case reply.Code == codeLoggedIn:
		c.login = &login{hop: s, conn: c}
		return c.login, reply, nil
	case reply.Code == codeClosing:
		c.Close()
	default:
		s.dismiss(c)
	}
	return nil, reply, nil
}

// authenticate carries out the exchange and returns the last reply.
func (c *conn) authenticate(args string, ask func(wire.Reply) (string, error)) (wire.Reply, error) {
	if !c.offers.Has("AUTH") {
		return wire.Reply{}, notOffered("AUTH")
	}
	c.inAuth = true
	defer func() { c.inAuth = false }()
	line := "AUTH " + args
	for challenges := 0; ; challenges++ {
		if strings.ContainsAny(line, "\r\n\x00") {
			return wire.Reply{}, errors.New("control bytes in the client's answer")
		}
		reply, err := c.ask(line, c.timeouts.Mail, codeChallenge)
		if err == nil && reply.Positive() && reply.Code != codeLoggedIn {
			err = wire.ErrBadReply
		}
		if err != nil {
			return wire.Reply{}, withoutBytes(err)
		}
		if reply.Code != codeChallenge {
			return reply, nil
		}
		if challenges == maxAuthRounds {
			return wire.Reply{}, errEndlessAuth
		}
		if line, err = ask(reply); err != nil {
			return wire.Reply{}, err
		}
	}
}

// withoutBytes returns an error without the bytes that the next hop sent: it may
// repeat there what the client sent.
func withoutBytes(err error) error {
	for _, known := range []error{errUnasked, wire.ErrBadReply, io.ErrUnexpectedEOF} {
		if errors.Is(err, known) {
			return known
		}
	}
	return err
}

// dismiss quits a connection in the background, or closes it after Close.
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
	conn   *conn // nil while a transaction has it, and after its end
	open   bool  // its last transaction is still open at the server
	closed bool
}

// Begin starts a transaction on the login's connection. Only XFORWARD uses the
// client of the envelope.
func (l *login) Begin(env Envelope) Transaction {
	t := newTransaction(l.hop, env)
	t.login = l
	return t
}

// Close ends the connection, at once or after the transaction under way.
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

// errLoggedOut reports a login whose connection is not available.
var errLoggedOut = errors.New("the client's own connection has ended, or is in use")

// take returns the connection to a transaction, after a RSET if the last one is still
// open.
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
	if err := c.during(ctx, func() error { return c.reset(c.timeouts.Mail) }); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// release takes the connection back after a transaction, which may still be open at
// the server.
func (l *login) release(c *conn, open bool) {
	c.alive = nil // it belongs to the transaction
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		l.hop.dismiss(c)
		return
	}
	l.conn, l.open = c, open
}
