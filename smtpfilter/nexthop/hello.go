package nexthop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"spamgate/smtpfilter/wire"
)

// connectOnce opens a connection for a client, or for ourselves if that is nil, up
// to the last reply to EHLO or HELO.
func (s *SMTP) connectOnce(ctx context.Context, client *Client) (*conn, error) {
	mode, began := s.tlsMode(), time.Now()
	c, err := s.dial(ctx, client, mode)
	if errors.Is(err, errTLS) && mode == TLSOpportunistic && ctx.Err() == nil {
		s.log.Warn("no TLS with the next hop: continuing in plain text", "next_hop", s.String(), "error", err)
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
	if client != nil {
		s.config.Meter.Took(s.name, StepConnect, time.Since(began))
	}
	return c, nil
}

// dial opens a connection with a mode of TLS. The error wraps errTLS if another
// mode may succeed.
func (s *SMTP) dial(ctx context.Context, client *Client, mode TLSMode) (*conn, error) {
	dialCtx, cancel := context.WithTimeout(ctx, s.config.Timeouts.Connect)
	defer cancel()
	nc, err := s.config.Dial(dialCtx, s.config.Network, s.config.Addr)
	if err != nil {
		return nil, inStep(StepConnect, fmt.Errorf("%w: %w", errConnect, err))
	}
	c := newConn(nc, s.config.Timeouts)
	c.lastReply = &s.lastReply
	if client != nil {
		c.alive = func() error { return s.checkAlive(ctx) }
	}
	if err := c.during(ctx, func() error { return s.begin(c, client, mode) }); err != nil {
		nc.Close()
		if errors.Is(err, errTLS) {
			return nil, inStep(StepTLS, err)
		}
		return nil, inStep(StepGreeting, err)
	}
	c.lastClose = &s.lastClose
	return c, nil
}

// errConnect is wrapped by the errors of Dial.
var errConnect = errors.New("connect")

// begin sends the PROXY header, begins TLS if it is implicit, reads the greeting,
// sends EHLO, and begins TLS with STARTTLS.
func (s *server) begin(c *conn, client *Client, mode TLSMode) error {
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
		return c.markProxied(s.addProxyHint(err))
	}
	if s.config.LMTP && c.verb != "LHLO" {
		return errNoLMTP
	}
	if mode == TLSRequired || mode == TLSOpportunistic && c.offers.Has("STARTTLS") {
		return s.startTLS(c)
	}
	return nil
}

// addProxyHint adds a possible cause to an error after a PROXY header: a server
// that does not expect one takes it for commands, answers each, and may hang up.
func (s *server) addProxyHint(err error) error {
	if s.config.Proxy != 0 && (errors.Is(err, wire.ErrBadReply) || errors.Is(err, io.EOF)) {
		return fmt.Errorf("%w (does it expect the PROXY protocol?)", err)
	}
	return err
}

// greet reads the greeting and sends EHLO. A server that has a client from the
// PROXY header may check that client before it greets, in DNS for instance, and
// take its time.
func (s *server) greet(c *conn, client *Client) error {
	if client == nil || s.config.Proxy == 0 || c.timeouts.Suspect == 0 {
		return c.hello(s.config.Hostname, s.config.LMTP)
	}
	deadline := time.Now().Add(c.timeouts.Mail)
	alive, err := c.awaitFirstByte(c.timeouts.Mail)
	if err != nil {
		return fmt.Errorf("greeting: %w", err)
	}
	c.timeouts.Greeting = time.Until(deadline)
	return markSlow(alive, c.hello(s.config.Hostname, s.config.LMTP))
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
	if err == nil && (reply.Code == 500 || reply.Code == 502) {
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
	c.errorCount = 0
	return nil
}

// sayHello sends c.verb with a name.
func (c *conn) sayHello(name string) (wire.Reply, error) {
	if _, err := io.WriteString(c, c.verb+" "+name+"\r\n"); err != nil {
		return wire.Reply{}, err
	}
	return c.readChecked(c.timeouts.Hello)
}

// helloAgain sends EHLO on a session that has returned to its beginning. The
// server's earlier offers no longer count.
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

// servers returns the mail servers of a target.
func servers(t Target) []*SMTP {
	switch t := t.(type) {
	case *SMTP:
		return []*SMTP{t}
	case *Group:
		var all []*SMTP
		for _, m := range t.members {
			all = append(all, servers(m.Target)...)
		}
		return all
	}
	return nil
}

// Greetings returns the last greetings of a target's servers: the text after "220 ".
// It begins with the server's name (RFC 5321, section 4.3.1), and most servers add
// their software's. A server that has not greeted yet has none.
func Greetings(t Target) []string {
	var all []string
	for _, s := range servers(t) {
		if text := s.known.greeting.Load(); text != nil {
			all = append(all, *text)
		}
	}
	return all
}

// GreetingName returns the server's name at the beginning of a greeting's text, in
// lower case and without a trailing dot. It returns "" if that is not a domain name
// with a dot.
func GreetingName(text string) string {
	name, _, _ := strings.Cut(text, " ")
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_'
	}
	if !strings.Contains(name, ".") || strings.ContainsFunc(name, odd) {
		return ""
	}
	return name
}
