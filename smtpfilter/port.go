package smtpfilter

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/emersion/go-smtp"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/limit"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// Settings is what holds for the clients of a port, and may change while the gate
// runs. A message is handled under the settings that its MAIL found, a connection
// under those that it found when it came.
type Settings struct {
	// Wire holds the limits and time-outs towards clients, TLS, and whom to
	// believe. Its functions and its Hostname are the Server's, Closed, TLS and
	// Normalize apart.
	Wire wire.Config

	// Checker judges the senders.
	Checker verdict.Checker

	// NextHop is where accepted mail goes.
	NextHop nexthop.Target

	// Memory remembers which recipients have a message that the next hop has
	// not taken for all of them; nil remembers nothing. It is for an LMTP next
	// hop: without it, recipients may get a message twice.
	Memory Memory

	// Policy says whom the lists apply to, and how a refusal reads.
	Policy Policy

	// NoNames leaves clients without a name.
	NoNames bool

	// PassAuth hands AUTH on to the next hop, if it is a nexthop.Authenticator.
	PassAuth bool

	// Limiter bounds what a client may do; nil means no limits.
	Limiter *limit.Limiter

	// Tarpit bounds how many refusals are held back at a time; nil holds none
	// back.
	Tarpit *limit.Tarpit
}

// Port is a place where clients come in.
type Port struct {
	server   *Server
	name     string
	settings atomic.Pointer[Settings]
	listener *wire.Listener
}

// Listen makes a port of a listener, of which it becomes the owner. The name is
// for the log, "" where there is one port only. Nobody is let in until Serve.
func (s *Server) Listen(l net.Listener, name string, settings Settings) *Port {
	p := &Port{server: s, name: name}
	settings.Policy = settings.Policy.indexed()
	p.settings.Store(&settings)
	p.listener = wire.NewListener(l, p.wireConfig(&settings))
	return p
}

// Serve takes clients until Shutdown, and returns nil then.
func (p *Port) Serve() error { return p.server.serve(p.listener) }

// Apply changes the settings for the connections and messages to come, and
// returns those that they replace; their NextHop may be closed.
func (p *Port) Apply(settings Settings) (old Settings) {
	settings.Policy = settings.Policy.indexed()
	old = *p.settings.Swap(&settings)
	p.listener.SetConfig(p.wireConfig(&settings))
	return old
}

// wireConfig is the wire's configuration with the server's hooks in it.
func (p *Port) wireConfig(settings *Settings) wire.Config {
	cfg := settings.Wire
	cfg.Hostname = p.server.cfg.Hostname
	cfg.MaxRecipients = settings.Policy.maxRecipients()
	closed := cfg.Closed
	cfg.Closed = func(c *wire.Conn) {
		p.closed(c)
		if closed != nil {
			closed(c)
		}
	}
	cfg.Refused = p.logBadCommand
	cfg.Noticed = p.logNoticed
	cfg.AcceptFailed = p.logAcceptFailed
	cfg.Extensions = func(*wire.Conn) wire.Extensions { return p.settings.Load().NextHop.Extensions() }
	if p.server.cfg.ID != "" {
		cfg.Path = p.path
	}
	cfg.Connected = p.connected
	cfg.Erred = p.erred
	cfg.Auth = nil
	if settings.PassAuth {
		cfg.Auth = p.authenticate
	}
	return cfg
}

// peer is what the gate keeps of a connection beside the session, which begins
// with HELO or EHLO only.
type peer struct {
	port   *Port
	ticket *limit.Ticket // counts it as open; nil where nothing is counted
	login  nexthop.Login // where the client has authenticated itself

	name  string     // in DNS, of the address named
	named netip.Addr // whose name was looked for

	gone  context.Context // ends with the client's connection; nil before the first message
	leave func()          // ends it
}

// left notes that the client has gone, or has become another one.
func (who *peer) left() {
	if who.leave != nil {
		who.leave()
		who.gone, who.leave = nil, nil
	}
}

// logOut ends the client's connection to the next hop, if it has one of its own.
func (who *peer) logOut() {
	if who.login != nil {
		who.login.Close() // a goodbye; its failure changes nothing
		who.login = nil
	}
}

// connected lets a client in, or says why not. It is asked again when a trusted
// proxy names another client.
func (p *Port) connected(c *wire.Conn) wire.Reply {
	who, ok := c.Owner().(*peer)
	if !ok {
		who = &peer{port: p}
		c.SetOwner(who)
		p.server.cfg.Meter.Connected(p.name)
	}
	who.ticket.Release()
	who.ticket = nil
	who.logOut()
	who.left()
	limiter := p.settings.Load().Limiter
	connect := limiter.Connect
	if c.IsProxy() {
		connect = limiter.ConnectProxy
	}
	ticket, hit := connect(c.Client().Addr.Addr())
	if !hit.Allowed() {
		return p.limited(c, hit)
	}
	who.ticket = ticket
	return wire.Reply{}
}

// closed hears of every connection's end.
func (p *Port) closed(c *wire.Conn) {
	if who, ok := c.Owner().(*peer); ok {
		who.ticket.Release()
		who.logOut()
		who.left()
		p.server.cfg.Meter.Disconnected(p.name)
	}
	p.logClosed(c)
}

// erred counts a client's errors.
func (p *Port) erred(c *wire.Conn) wire.Reply {
	hit := p.settings.Load().Limiter.Error(c.Client().Addr.Addr())
	if hit.Allowed() {
		return wire.Reply{}
	}
	return p.limited(c, hit)
}

// newSession is go-smtp's Backend: it runs at the first HELO or EHLO.
func newSession(c *smtp.Conn) (smtp.Session, error) {
	conn, ok := c.Conn().(*wire.Conn)
	if !ok {
		return nil, errors.New("smtpfilter: the connection is not a wire.Conn")
	}
	who, ok := conn.Owner().(*peer)
	if !ok {
		return nil, errors.New("smtpfilter: the connection has not been let in")
	}
	trim(c, conn)
	who.port.askName(conn)
	return &session{server: who.port.server, peer: who, conn: conn}, nil
}

// authenticate hands a client's AUTH on to the next hop.
func (p *Port) authenticate(c *wire.Conn, args string, ask func(wire.Reply) (string, error)) wire.Reply {
	who, ok := c.Owner().(*peer)
	target, can := p.settings.Load().NextHop.(nexthop.Authenticator)
	if !ok || !can {
		return wire.NewReply(502, "5.5.1 AUTH is not offered")
	}
	var faulty error
	login, reply, err := target.Authenticate(p.server.ctx, who.client(c), args, func(challenge wire.Reply) (string, error) {
		line, err := ask(challenge)
		faulty = err
		return line, err
	})
	mechanism, _, _ := strings.Cut(args, " ")
	switch {
	case faulty != nil:
		reply = wire.NewReply(501, "5.5.2 Authentication exchange broken off")
	case err != nil:
		// RFC 4954, section 4: 454 says that the client may try again.
		reply = wire.NewReply(454, "4.7.0 The mail server behind this gate cannot be asked, try again later")
	default:
		who.login = login
	}
	p.logAuth(c, mechanism, reply, err, faulty)
	return reply
}

// nextHopClient describes a client to the next hop.
func nextHopClient(c wire.Client) nexthop.Client {
	return nexthop.Client{Name: c.Name, Addr: c.Addr, Local: c.Local, Helo: c.Helo, Proto: c.Proto, Login: c.Login}
}

// client describes the client of c to the next hop. Its name is looked for when
// the next hop wants to know it, once for each client.
func (who *peer) client(c *wire.Conn) nexthop.Client {
	client := nextHopClient(c.Client())
	if who.gone == nil {
		who.gone, who.leave = context.WithCancel(context.Background())
	}
	client.Gone = who.gone
	names := who.port.names(who.port.settings.Load())
	switch addr := client.Addr.Addr(); {
	case names == nil || client.Name != "":
	case who.named == addr:
		client.Name = who.name
	default:
		client.LookupName = func(ctx context.Context) string {
			who.name, who.named = names.Name(ctx, addr), addr
			return who.name
		}
	}
	return client
}

// names returns who knows the names of clients, nil for nobody.
func (p *Port) names(s *Settings) Names {
	if s.NoNames {
		return nil
	}
	return p.server.cfg.Names
}

// askName begins to look for the name of the client of c if the next hop will want
// it, while the client is busy with its first commands. A proxy is expected to name
// another client.
func (p *Port) askName(c *wire.Conn) {
	settings, client := p.settings.Load(), c.Client()
	names := p.names(settings)
	if names != nil && client.Name == "" && !c.IsProxy() && nexthop.WantsName(settings.NextHop) {
		names.Ask(client.Addr.Addr())
	}
}
