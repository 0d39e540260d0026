package smtpfilter

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/emersion/go-smtp"

	"spamgate/smtpfilter/limit"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// Listener is a socket that accepts clients, with the Settings for them.
type Listener struct {
	server   *Server
	name     string
	settings atomic.Pointer[Settings]
	wire     *wire.Listener
}

// Listen returns a Listener that owns nl. The name is for the log; it may be "" if there
// is one Listener. No client is accepted until Serve. If the settings are invalid, nl
// stays open and is the caller's. After Shutdown, Listen closes nl.
func (s *Server) Listen(nl net.Listener, name string, settings Settings) (*Listener, error) {
	if err := settings.Validate(); err != nil {
		return nil, err
	}
	l := &Listener{server: s, name: name}
	l.settings.Store(&settings)
	l.wire = wire.NewListener(nl, l.wireConfig(&settings))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return l, l.wire.Close()
	}
	s.listeners = append(s.listeners, l.wire)
	return l, nil
}

// Serve accepts clients until Shutdown, and returns nil then.
func (l *Listener) Serve() error { return l.server.serve(l.wire) }

// Apply changes the settings for future connections and messages. It returns the previous
// settings, whose NextHop may be closed. Invalid settings change nothing.
func (l *Listener) Apply(settings Settings) (old Settings, err error) {
	if err := settings.Validate(); err != nil {
		return Settings{}, err
	}
	old = *l.settings.Swap(&settings)
	l.wire.SetConfig(l.wireConfig(&settings))
	return old, nil
}

// peer is the state of a connection outside its session, which begins with HELO or EHLO.
type peer struct {
	listener *Listener
	ticket   *limit.Ticket // the open connection; nil if it is not counted
	login    nexthop.Login // if the client has authenticated itself here
	limited  limit.LoginID // whose limits are those of that login
	charged  bool          // the AUTH under way was counted as an error in advance

	name      string     // in DNS, of the address namedAddr
	namedAddr netip.Addr // whose name was looked up

	gone    context.Context // ends with the client's connection; nil before the first message
	endGone func()
}

// leave ends the context gone: the client has disconnected, or a proxy has named another
// client.
func (p *peer) leave() {
	if p.endGone != nil {
		p.endGone()
		p.gone, p.endGone = nil, nil
	}
}

// logOut ends the client's own connection to the next hop, if it has one.
func (p *peer) logOut() {
	if p.login != nil {
		p.login.Close() // says goodbye; a failure has no effect
		p.login, p.limited = nil, 0
	}
}

// loginID returns the login of the client for the limits of logins: that of its AUTH, or the
// one that a trusted proxy has named.
func (p *peer) loginID(c *wire.Conn) limit.LoginID {
	if p.login == nil {
		if name := c.Client().Login; name != "" {
			return limit.LoginOf(foldLogin(name))
		}
	}
	return p.limited
}

// connected accepts a client, or returns the reply that refuses it. The wire calls it
// again when a trusted proxy has named another client.
func (l *Listener) connected(c *wire.Conn) wire.Reply {
	p, ok := c.Owner().(*peer)
	if !ok {
		p = &peer{listener: l}
		c.SetOwner(p)
		l.server.cfg.Meter.Connected(l.name)
	}
	p.ticket.Release()
	p.ticket = nil
	p.logOut()
	p.leave()
	limiter := l.settings.Load().Limiter
	connect := limiter.Connect
	if c.IsProxy() {
		connect = limiter.ConnectProxy
	}
	ticket, result := connect(c.Client().Addr.Addr())
	if !result.Allowed() {
		return l.limited(c, result)
	}
	p.ticket = ticket
	return wire.Reply{}
}

// closed handles the end of a connection.
func (l *Listener) closed(c *wire.Conn) {
	if p, ok := c.Owner().(*peer); ok {
		p.ticket.Release()
		p.logOut()
		p.leave()
		l.server.cfg.Meter.Disconnected(l.name)
	}
	l.logClosed(c)
}

// erred counts a client's error, and returns the reply that ends the connection if there
// were too many.
func (l *Listener) erred(c *wire.Conn) wire.Reply {
	if p, ok := c.Owner().(*peer); ok && p.charged {
		p.charged = false
		return wire.Reply{}
	}
	result := l.settings.Load().Limiter.Error(c.Client().Addr.Addr())
	if result.Allowed() {
		return wire.Reply{}
	}
	return l.limited(c, result)
}

// newSession is go-smtp's Backend, called at the first HELO or EHLO.
func newSession(c *smtp.Conn) (smtp.Session, error) {
	conn, ok := c.Conn().(*wire.Conn)
	if !ok {
		return nil, errors.New("smtpfilter: the connection is not a wire.Conn")
	}
	p, ok := conn.Owner().(*peer)
	if !ok {
		return nil, errors.New("smtpfilter: the connection was not accepted by a Listener")
	}
	shrinkSMTPBuffers(c, conn)
	p.listener.askName(conn)
	return &session{server: p.listener.server, peer: p, conn: conn}, nil
}

// authenticate passes a client's AUTH on to the next hop.
func (l *Listener) authenticate(c *wire.Conn, args string, ask func(wire.Reply) (string, error)) wire.Reply {
	p, ok := c.Owner().(*peer)
	target, can := l.settings.Load().NextHop.(nexthop.Authenticator)
	if !ok || !can {
		return wire.NewReply(502, "5.5.1 AUTH is not offered")
	}
	// The attempt counts as an error until it succeeds. So the limit of errors bounds the
	// passwords that the next hop is asked about, also over many connections at once.
	limiter, addr := l.settings.Load().Limiter, c.Client().Addr.Addr()
	if result := limiter.Error(addr); !result.Allowed() {
		return l.limited(c, result)
	}
	p.charged = true
	var clientErr error
	exchange := newSASLExchange(args)
	login, reply, err := target.Authenticate(l.server.ctx, p.client(c), args, func(challenge wire.Reply) (string, error) {
		line, err := ask(challenge)
		clientErr = err
		exchange.add(line)
		return line, err
	})
	if err == nil {
		err = checkReply(reply)
	}
	if err == nil && reply.Code == 235 && login == nil {
		err = errors.New("the next hop returned no login with 235")
	}
	mechanism, _, _ := strings.Cut(args, " ")
	outcome := AuthAuthenticated
	switch {
	case clientErr != nil:
		outcome = AuthAbandoned
		reply = wire.NewReply(501, "5.5.2 Authentication exchange broken off")
	case err != nil:
		outcome = AuthUnavailable
		// RFC 4954, section 4: 454 allows the client to try again.
		reply = wire.NewReply(454, "4.7.0 The mail server behind this gate cannot be asked, try again later")
	case reply.Positive():
		p.login, p.limited = login, exchange.login(addr)
		p.charged = false
		limiter.Forgive(addr)
	case reply.Temporary():
		outcome = AuthUnavailable
	case reply.Code == 501: // RFC 4954, section 4: cancelled with "*", or not base64
		outcome = AuthAbandoned
	default:
		outcome = AuthRefused
	}
	l.server.cfg.Meter.Auth(l.name, outcome)
	l.logAuth(c, mechanism, reply, outcome, errors.Join(err, clientErr))
	return reply
}

// nextHopClient describes a client to the next hop.
func nextHopClient(c wire.Client) nexthop.Client {
	return nexthop.Client{Name: c.Name, Addr: c.Addr, Local: c.Local, Helo: c.Helo, Proto: c.Proto, Login: c.Login}
}

// client describes the client of c to the next hop. It looks up the name once for each
// client, and only if the next hop wants it.
func (p *peer) client(c *wire.Conn) nexthop.Client {
	client := nextHopClient(c.Client())
	if p.gone == nil {
		p.gone, p.endGone = context.WithCancel(context.Background())
	}
	client.Gone = p.gone
	names := p.listener.names(p.listener.settings.Load())
	switch addr := client.Addr.Addr(); {
	case names == nil || client.Name != "":
	case p.namedAddr == addr:
		client.Name = p.name
	default:
		client.LookupName = func(ctx context.Context) string {
			p.name, p.namedAddr = names.Name(ctx, addr), addr
			return p.name
		}
	}
	return client
}

// names returns the Names for clients, nil if names are not looked up.
func (l *Listener) names(s *Settings) Names {
	if s.NoNames {
		return nil
	}
	return l.server.cfg.Names
}

// askName begins to look up the name of the client of c if the next hop will want it. The
// lookup runs during the client's first commands. A proxy will name another client.
func (l *Listener) askName(c *wire.Conn) {
	settings, client := l.settings.Load(), c.Client()
	names := l.names(settings)
	if names != nil && client.Name == "" && !c.IsProxy() && nexthop.WantsName(settings.NextHop) {
		names.Ask(client.Addr.Addr())
	}
}
