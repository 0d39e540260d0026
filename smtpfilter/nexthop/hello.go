package nexthop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	smtp "github.com/emersion/go-smtp"

	"spamgate/smtpfilter/wire"
)

// connectOnce is connect without a second attempt.
func (s *SMTP) connectOnce(ctx context.Context, client *Client) (*conn, error) {
	mode := s.config.TLS.Mode
	c, err := s.dial(ctx, client, mode)
	if errors.Is(err, errTLS) && mode == TLSOpportunistic && ctx.Err() == nil {
		s.log.Warn("no TLS with the next hop: going on in plain text", "next_hop", s.String(), "error", err)
		c, err = s.dial(ctx, client, TLSNone)
	}
	if err != nil {
		return nil, err
	}
	s.known.learnPath(c.offers, s.config.GateID)
	if err := s.checkLoop(c); err != nil {
		c.Close()
		return nil, err
	}
	s.learn(c)
	return c, nil
}

// dial is connect with a mode of TLS. An error after which another mode may do
// better wraps errTLS.
func (s *SMTP) dial(ctx context.Context, client *Client, mode TLSMode) (*conn, error) {
	dialCtx, cancel := context.WithTimeout(ctx, s.config.Timeouts.Connect)
	defer cancel()
	nc, err := s.config.Dial(dialCtx, s.config.Network, s.config.Addr)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errConnect, err)
	}
	c := newConn(nc, s.config.Timeouts)
	c.answered = &s.answered
	if client != nil {
		c.stillThere = func() error { return s.askStillThere(ctx) }
	}
	if s.config.LMTP {
		c.client = smtp.NewClientLMTP(c.lines)
	}
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	err = s.begin(c, client, mode)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	c.ended = &s.ended
	return c, nil
}

// errConnect is about a connection that could not be had.
var errConnect = errors.New("connect")

// begin goes through what a connection begins with: the PROXY header, TLS,
// greeting, EHLO, STARTTLS and another EHLO.
func (s *SMTP) begin(c *conn, client *Client, mode TLSMode) error {
	if s.config.Proxy != 0 {
		if err := s.sendProxyHeader(c, client); err != nil {
			return fmt.Errorf("PROXY header: %w", err)
		}
	}
	if mode == TLSImplicit {
		if err := c.handshake(s.tls); err != nil {
			return err
		}
	}
	if err := s.greet(c, client); err != nil {
		return c.blameClient(s.suspectProxy(err))
	}
	if s.config.LMTP && c.verb != "LHLO" {
		return errNoLMTP
	}
	if mode == TLSRequired || mode == TLSOpportunistic && c.offers.Has("STARTTLS") {
		return s.startTLS(c)
	}
	return nil
}

// suspectProxy adds to an error with which a connection begins what may be behind
// it where the PROXY header stands in front: a server that does not expect one
// takes it for commands, answers each, and may hang up.
func (s *SMTP) suspectProxy(err error) error {
	if s.config.Proxy != 0 && (errors.Is(err, wire.ErrBadReply) || errors.Is(err, io.EOF)) {
		return fmt.Errorf("%w (does it expect the PROXY protocol?)", err)
	}
	return err
}

// greet has a connection greeted. A server that the PROXY header has told a client may
// look into that before it greets, in DNS for instance, and take its time.
func (s *SMTP) greet(c *conn, client *Client) error {
	if client == nil || s.config.Proxy == 0 || c.timeouts.Suspect == 0 {
		return c.hello(s.config.Hostname)
	}
	deadline := time.Now().Add(c.timeouts.Mail)
	there, err := c.awaitReply(c.timeouts.Mail)
	if err != nil {
		return fmt.Errorf("greeting: %w", err)
	}
	c.timeouts.Greeting = time.Until(deadline)
	return slow(there, c.hello(s.config.Hostname))
}

// hello has the smtp.Client read the greeting and say EHLO, and HELO where the
// server does not know that. What the server offers is read from the lines that
// passed, because the client knows keywords in upper case only.
func (c *conn) hello(hostname string) error {
	c.SetReadDeadline(time.Now().Add(c.timeouts.Greeting))
	c.lines.timeout = c.timeouts.Hello
	err := c.client.Hello(hostname)
	step := c.lines.verb
	if step == "" {
		step = "greeting"
	}
	var refused *smtp.SMTPError
	switch {
	case errors.As(err, &refused) && c.lines.verb == "":
		return &ReplyError{Reply: c.lines.reply, Err: errGreeting}
	case errors.As(err, &refused):
		return &ReplyError{Reply: c.lines.reply, Err: fmt.Errorf("%s refused", step)}
	case err != nil:
		return fmt.Errorf("%s: %w", step, err)
	}
	c.verb = step
	if step != "HELO" {
		c.offers = wire.ParseExtensions(c.lines.reply)
	}
	return nil
}

// helloAgain says EHLO once more, on a session that is back at its beginning.
// What the next hop has offered is forgotten.
func (c *conn) helloAgain(name string) error {
	c.offers = nil
	reply, err := c.ask(c.verb+" "+name, c.timeouts.Mail, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", c.verb, err)
	}
	if !reply.Positive() {
		return &ReplyError{Reply: reply, Err: fmt.Errorf("%s refused", c.verb)}
	}
	c.offers = wire.ParseExtensions(reply)
	return nil
}

// lineConn is the conn as the smtp.Client sees it. A Read returns one checked
// reply line at most, so that the client never holds bytes beyond the reply that
// it reads, and its deadlines are ours.
type lineConn struct {
	*conn
	timeout time.Duration // for the reply to what is written

	verb     string     // of the last command; "" before the first
	greeting wire.Reply // what the server said first
	reply    wire.Reply // since the last command
	rest     []byte     // of the line that is being read
}

func (l *lineConn) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		if err := l.nextLine(); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// nextLine reads a reply line, and writes it anew: the client refuses a code
// without a text, which the RFC wants accepted (section 4.2).
func (l *lineConn) nextLine() error {
	line, err := l.readLine()
	if err != nil {
		return err
	}
	last, err := l.reply.AppendLine(line)
	if err != nil {
		return err
	}
	separator := byte('-')
	if last {
		separator = ' '
		l.noteAnswer()
		if err := l.check(l.reply, 0); err != nil {
			return err
		}
		if l.verb == "" {
			l.greeting = l.reply
		}
	}
	l.rest = strconv.AppendInt(l.rest[:0], int64(l.reply.Code), 10)
	l.rest = append(l.rest, separator)
	l.rest = append(l.rest, l.reply.Lines[len(l.reply.Lines)-1]...)
	l.rest = append(l.rest, '\r', '\n')
	return nil
}

func (l *lineConn) Write(p []byte) (int, error) {
	l.verb, _, _ = strings.Cut(strings.TrimSpace(string(p)), " ")
	l.reply = wire.Reply{}
	l.SetReadDeadline(time.Now().Add(l.timeout))
	return l.conn.Write(p)
}

// SetDeadline does nothing: the client would overwrite our deadlines.
func (l *lineConn) SetDeadline(time.Time) error { return nil }
