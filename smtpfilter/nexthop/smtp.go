package nexthop

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Timeouts limit each wait for the next hop. The defaults are those of RFC 5321,
// section 4.5.3.2, if it has one.
type Timeouts struct {
	Connect  time.Duration // TCP connection, and TLS handshake; zero is 30 s
	Greeting time.Duration // the 220; zero is 5 min
	Hello    time.Duration // reply to EHLO and STARTTLS, before the server has a client's identity; zero is Mail
	Mail     time.Duration // reply to AUTH, XCLIENT, XFORWARD and MAIL; zero is 5 min
	Rcpt     time.Duration // reply to RCPT; zero is 5 min
	Data     time.Duration // reply to DATA; zero is 2 min
	Write    time.Duration // one write to the connection, and reply to a chunk before the last; zero is 3 min
	Dot      time.Duration // reply to the final dot or the last chunk, all replies of an LMTP server together; zero is 10 min
	Quit     time.Duration // RSET or QUIT in the background; zero is 5 s

	// Suspect is how long the server may be silent when a reply may take long
	// (Mail, Rcpt, Data). Then the gate checks on another connection whether the
	// server is alive. If it does not answer there either, within Connect,
	// Greeting and Hello, the wait ends. Zero never checks.
	Suspect time.Duration
}

// withDefaults replaces the zeros.
func (t Timeouts) withDefaults() Timeouts {
	t.Connect = cmp.Or(t.Connect, 30*time.Second)
	t.Greeting = cmp.Or(t.Greeting, 5*time.Minute)
	t.Mail = cmp.Or(t.Mail, 5*time.Minute)
	t.Hello = cmp.Or(t.Hello, t.Mail)
	t.Rcpt = cmp.Or(t.Rcpt, 5*time.Minute)
	t.Data = cmp.Or(t.Data, 2*time.Minute)
	t.Write = cmp.Or(t.Write, 3*time.Minute)
	t.Dot = cmp.Or(t.Dot, 10*time.Minute)
	t.Quit = cmp.Or(t.Quit, 5*time.Second)
	return t
}

// TLSMode says whether the connection to the next hop is encrypted.
type TLSMode uint8

// The modes.
const (
	TLSNone          TLSMode = iota // plain text; as TLSOpportunistic once the server has asked for STARTTLS (530)
	TLSOpportunistic                // STARTTLS if it is offered, without verification; plain text if not, or on a new connection after a failure
	TLSRequired                     // STARTTLS with a verified certificate, or no mail
	TLSImplicit                     // TLS from the first byte, with a verified certificate
)

// TLSConfig says how the next hop's certificate is verified.
type TLSConfig struct {
	Mode TLSMode

	// Roots are the trusted authorities; nil means the system's.
	Roots *x509.CertPool

	// Name is the name that the certificate must have; "" is the host of Addr.
	Name string

	// Pins are SHA-256 sums of public keys (SubjectPublicKeyInfo). If there are
	// any, the certificate must have one of these keys, and authorities and
	// names do not count.
	Pins [][sha256.Size]byte
}

// Identity says how the next hop receives the client's identity.
type Identity uint8

// The identities.
const (
	// IdentityAuto is XCLIENT if it is offered, else XFORWARD if that is. After
	// XCLIENT a kept connection may serve one client only: Postfix accepts no
	// second XCLIENT on it.
	IdentityAuto Identity = iota

	// IdentityXCLIENT is XCLIENT. A next hop that does not offer it gets no
	// mail.
	IdentityXCLIENT

	// IdentityXFORWARD is XFORWARD, if it is offered.
	IdentityXFORWARD

	// IdentityNone sends only that the client is on another machine: XFORWARD
	// SOURCE=REMOTE, if it is offered.
	IdentityNone
)

// SMTPConfig says where an SMTP next hop is and how to use it.
type SMTPConfig struct {
	Addr     string // host:port
	Hostname string // our name in EHLO; "" is "localhost"

	// GateID is this gate's name in paths (see Path), by which it finds itself in
	// a loop: 15 bytes at most, printable, no space. "" is none.
	GateID string

	// Reuse keeps connections for later messages. Without it each transaction
	// has its own.
	Reuse bool

	// Chunks sends a message in the format of DATA as a chunk (BDAT, RFC 3030),
	// unless its SIZE is more than 128 KiB, to a server that offers CHUNKING. That
	// saves a round trip. Raw and Binary messages always go in chunks there.
	Chunks bool

	// MaxIdle is the number of idle connections kept; zero is 32. A server with
	// a process for each connection (Postfix: 100 by default) needs room for
	// them.
	MaxIdle int

	// IdleTimeout is how long an idle connection is kept; zero is 30 s. If only
	// one client's connection to us can use it, it ends with that (Client.Gone).
	IdleTimeout time.Duration

	// MessagesPerConnection is how many messages a kept connection carries. Zero
	// is 10 for a server that greets as Exim, and no limit but the server's own
	// (MAILMAX of LIMITS, RFC 9422) for others.
	MessagesPerConnection int

	Timeouts Timeouts

	// Network is "tcp" or "" for host:port, or "unix" for the path of a socket.
	Network string

	// LMTP uses LMTP (RFC 2033) in place of SMTP. The server then replies to a
	// message for each recipient: Message.Commit returns one reply for all, see
	// MergeReplies, and the Message is an EachReply.
	LMTP bool

	TLS      TLSConfig
	Identity Identity

	// Proxy is the version of the PROXY header that begins every connection, 1
	// or 2; 0 is none. Each client then has connections of its own.
	Proxy int

	// ProbeInterval is how often the gate asks the next hop what it offers while
	// nobody else connects, give or take a tenth; zero is 1 min. The first probe
	// is at once. Negative: never.
	ProbeInterval time.Duration

	// Dial connects; nil is net.Dialer. The context ends after
	// Timeouts.Connect.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// Meter counts failures and durations; nil counts nothing.
	Meter Meter

	// Logger receives what changes no reply: a refused XFORWARD, a dead kept
	// connection, a failed probe. Nil discards it.
	Logger *slog.Logger
}

// SMTP is a Target that delivers to a mail server over SMTP or LMTP.
type SMTP struct {
	server

	lastClose  atomic.Int64 // when a connection that could carry mail was last closed, or about to be, in ns since 1970
	aliveCheck aliveCheck

	background sync.WaitGroup  // no goroutine is started once closed is set
	ctx        context.Context // of probes and checks; ended by Close
	stop       func()

	mu     sync.Mutex
	closed bool
	idle   []*conn // kept connections, in the order of idleSince
}

// server is the mail server: how the gate begins a connection, and what it has learned there.
type server struct {
	config SMTPConfig
	name   string // see String
	log    *slog.Logger
	tls    *tls.Config // also if TLS is not configured: see startsTLS
	known  known

	// complaints are the attributes of XFORWARD that were logged as refused or
	// not offered: the first of each command, and each once.
	complaints sync.Map

	// xclientRequired is set if the next hop refuses to relay for a stranger
	// named by XCLIENT: then no connection without XCLIENT may carry mail.
	xclientRequired atomic.Bool

	startsTLS atomic.Bool                 // the server asks for STARTTLS, and the configuration says nothing of TLS
	failed    atomic.Pointer[func(error)] // of a Group, which receives what noteSession notes
	refusals  refusals
	lastReply atomic.Int64 // when the server last replied on any connection, in ns since 1970
}

var (
	_ Target        = (*SMTP)(nil)
	_ Authenticator = (*SMTP)(nil)
)

// NewSMTP returns a target for a mail server. It does not wait for a connection.
// The caller must close the target.
func NewSMTP(config SMTPConfig) (*SMTP, error) {
	config.Network = cmp.Or(config.Network, "tcp")
	if _, _, err := net.SplitHostPort(config.Addr); err != nil && config.Network == "tcp" {
		return nil, fmt.Errorf("next hop %q: %w", config.Addr, err)
	}
	if strings.ContainsAny(config.Hostname, "\r\n\x00 ") {
		return nil, fmt.Errorf("next hop %s: invalid host name %q for EHLO", config.Addr, config.Hostname)
	}
	if config.Proxy < 0 || config.Proxy > 2 {
		return nil, fmt.Errorf("next hop %s: invalid version %d of the PROXY protocol, want 1 or 2", config.Addr, config.Proxy)
	}
	config.Hostname = cmp.Or(config.Hostname, "localhost")
	config.MaxIdle = cmp.Or(config.MaxIdle, 32)
	config.IdleTimeout = cmp.Or(config.IdleTimeout, 30*time.Second)
	config.ProbeInterval = cmp.Or(config.ProbeInterval, time.Minute)
	if config.Dial == nil {
		config.Dial = new(net.Dialer).DialContext
	}
	config.Timeouts = config.Timeouts.withDefaults()

	if config.Meter == nil {
		config.Meter = noMeter{}
	}
	s := &SMTP{server: server{config: config, name: config.address().String(), log: logger(config.Logger)}}
	s.known.probed = make(chan struct{})
	var err error
	if s.tls, err = newTLS(config.TLS, config.Addr); err != nil {
		return nil, fmt.Errorf("next hop %s: %w", config.Addr, err)
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if config.Reuse {
		s.background.Go(s.expire)
	}
	if config.ProbeInterval > 0 {
		s.background.Go(func() { s.keepProbing(s.ctx) })
	}
	return s, nil
}

// String returns the scheme with host and port, or with the path of the socket.
func (s *server) String() string { return s.name }

// Begin starts a transaction.
func (s *SMTP) Begin(env Envelope) Transaction {
	t := newTransaction(s, env)
	t.err = s.checkOpen()
	return t
}

// checkOpen returns an error after Close.
func (s *SMTP) checkOpen() error {
	if s.ctx.Err() != nil {
		return fmt.Errorf("next hop %s: %w", s, ErrClosed)
	}
	return nil
}

// Close sends QUIT on every kept connection and waits for the replies, at most
// Timeouts.Quit.
func (s *SMTP) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	for len(s.idle) > 0 {
		s.startQuit(s.removeIdle(0))
	}
	s.closed = true
	s.stop()
	s.mu.Unlock()
	s.background.Wait()
	return nil
}
