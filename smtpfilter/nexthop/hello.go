package nexthop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

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
		return c.hello(s.config.Hostname, s.config.LMTP)
	}
	deadline := time.Now().Add(c.timeouts.Mail)
	there, err := c.awaitReply(c.timeouts.Mail)
	if err != nil {
		return fmt.Errorf("greeting: %w", err)
	}
	c.timeouts.Greeting = time.Until(deadline)
	return slow(there, c.hello(s.config.Hostname, s.config.LMTP))
}

// hello reads the greeting and sends EHLO, and HELO if the server does not know
// EHLO. With lmtp it sends LHLO.
func (c *conn) hello(hostname string, lmtp bool) error {
	var err error
	if c.greeting, err = c.readChecked(c.timeouts.Greeting); err != nil {
		return fmt.Errorf("greeting: %w", err)
	}
	if c.greeting.Code != codeReady {
		return &ReplyError{Reply: c.greeting, Err: errGreeting}
	}
	c.verb = "EHLO"
	if lmtp {
		c.verb = "LHLO"
	}
	reply, err := c.sayHello(hostname)
	if reply.Code == 500 || reply.Code == 502 {
		c.verb = "HELO"
		reply, err = c.sayHello(hostname)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.verb, err)
	}
	if reply.Code != 250 {
		return &ReplyError{Reply: reply, Err: fmt.Errorf("%s refused", c.verb)}
	}
	if c.verb != "HELO" {
		c.offers = wire.ParseExtensions(reply)
	}
	c.wear = 0
	return nil
}

// sayHello sends c.verb with a name.
func (c *conn) sayHello(name string) (wire.Reply, error) {
	if _, err := io.WriteString(c, c.verb+" "+name+"\r\n"); err != nil {
		return wire.Reply{}, err
	}
	return c.readChecked(c.timeouts.Hello)
}

// readChecked reads the reply that ends an exchange: see check.
func (c *conn) readChecked(timeout time.Duration) (wire.Reply, error) {
	reply, err := c.readReply(timeout)
	if err == nil {
		err = c.check(reply, 0)
	}
	return reply, err
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
