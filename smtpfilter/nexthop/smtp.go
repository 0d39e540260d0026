package nexthop

import (
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

// Timeouts bound each wait for the next hop. Zero means the value of RFC 5321,
// section 4.5.3.2, where it has one.
type Timeouts struct {
	Connect  time.Duration // TCP connection, and TLS handshake; zero is 30 s
	Greeting time.Duration // the 220; zero is 5 min
	Hello    time.Duration // reply to EHLO and STARTTLS, before the server knows of a client; zero is Mail
	Mail     time.Duration // reply to AUTH, XCLIENT, XFORWARD and MAIL; zero is 5 min
	Rcpt     time.Duration // reply to RCPT; zero is 5 min
	Data     time.Duration // reply to DATA; zero is 2 min
	Write    time.Duration // one write to the connection, and reply to a chunk before the last; zero is 3 min
	Dot      time.Duration // reply to the final dot or the last chunk, all replies of an LMTP server together; zero is 10 min
	Quit     time.Duration // goodbye, RSET or QUIT, which nobody waits for; zero is 5 s

	// Suspect is how long the server may be silent, inside one of the waits for a
	// reply that may take long (Mail, Rcpt, Data), until it is asked over another
	// connection whether it is there. If it does not answer there either, within
	// Connect, Greeting and Hello, the wait ends. Zero never asks.
	Suspect time.Duration
}

// withDefaults fills in the zeros.
func (t Timeouts) withDefaults() Timeouts {
	for _, d := range []struct {
		value *time.Duration
		zero  time.Duration
	}{
		{&t.Connect, 30 * time.Second},
		{&t.Greeting, 5 * time.Minute},
		{&t.Mail, 5 * time.Minute},
		{&t.Rcpt, 5 * time.Minute},
		{&t.Data, 2 * time.Minute},
		{&t.Write, 3 * time.Minute},
		{&t.Dot, 10 * time.Minute},
		{&t.Quit, 5 * time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.zero
		}
	}
	if t.Hello == 0 {
		t.Hello = t.Mail
	}
	return t
}

// TLSMode says whether the connection to the next hop is encrypted.
type TLSMode uint8

// The modes.
const (
	TLSNone          TLSMode = iota
	TLSOpportunistic         // STARTTLS where it is offered, whoever answers; else, and where it fails, without, on a new connection
	TLSRequired              // STARTTLS, with a certificate that is verified; else no mail
	TLSImplicit              // TLS from the first byte, verified
)

// TLSConfig says how the next hop is known.
type TLSConfig struct {
	Mode TLSMode

	// Roots are the authorities that are trusted; nil means the system's.
	Roots *x509.CertPool

	// Name is what the certificate must be for; "" is the host of Addr.
	Name string

	// Pins are SHA-256 sums of public keys (SubjectPublicKeyInfo). With one or
	// more the certificate must have one of them, and authorities and name do
	// not count.
	Pins [][sha256.Size]byte
}

// Identity says how the next hop hears of the client.
type Identity uint8

// The identities.
const (
	// IdentityAuto is XCLIENT where it is offered, else XFORWARD where that is.
	// With XCLIENT a kept connection may be one client's for good: Postfix takes
	// no second XCLIENT on it.
	IdentityAuto Identity = iota

	// IdentityXCLIENT is XCLIENT; a next hop that does not offer it gets no
	// mail.
	IdentityXCLIENT

	// IdentityXFORWARD is XFORWARD where it is offered.
	IdentityXFORWARD

	// IdentityNone tells the next hop nothing of the client, but only that it is
	// on another machine: XFORWARD SOURCE=REMOTE, where that is offered.
	IdentityNone
)

// SMTPConfig says where an SMTP next hop is and how to speak with it.
type SMTPConfig struct {
	Addr     string // host:port
	Hostname string // what we call ourselves in EHLO; "" is "localhost"

	// GateID is what this gate is called in paths (see Path), by which it knows itself
	// in a loop: 15 bytes at most, printable, no space. "" is none.
	GateID string

	// Reuse keeps a connection for later messages. Without it each
	// transaction has its own.
	Reuse bool

	// MaxIdle is the number of connections kept while they carry nothing;
	// zero is 32. A server that gives each connection a process (Postfix:
	// 100 of them by default) should have room for them.
	MaxIdle int

	// IdleTimeout is how long such a connection is kept; zero is 30 s. One that only
	// one client's connection to us can use ends with that (Client.Gone).
	IdleTimeout time.Duration

	// MessagesPerConnection is how many messages a kept connection carries before
	// it ends. Zero is 10 for a server that greets as Exim, and as many as the
	// server takes for all others: see learntMessages.
	MessagesPerConnection int

	Timeouts Timeouts

	// Network is "tcp" or, with the path of a socket in Addr, "unix". "" is
	// "tcp".
	Network string

	// LMTP speaks LMTP (RFC 2033) in place of SMTP. The server answers a message
	// for each recipient apart: Message.Commit returns one reply for all, see
	// MergeReplies, and the Message is an EachReply.
	LMTP bool

	// TLS says how the connection is protected.
	TLS TLSConfig

	// Identity says how the next hop hears of the client.
	Identity Identity

	// Proxy is the version of the PROXY protocol that every connection begins
	// with, 1 or 2; 0 means that it does not. Each client then has connections of
	// its own.
	Proxy int

	// ProbeInterval is how often the next hop is asked what it offers while
	// nobody connects anyway, give or take a tenth; zero is 1 min. It is asked
	// at once when the target is made. Negative: never.
	ProbeInterval time.Duration

	// Dial connects; nil is net.Dialer. The context ends after
	// Timeouts.Connect.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// Logger hears what changes no reply: a refused XFORWARD, a kept
	// connection that was found dead, a probe that fails. Nil discards it.
	Logger *slog.Logger
}

// SMTP is a mail server that takes mail over SMTP.
type SMTP struct {
	config SMTPConfig
	log    *slog.Logger
	tls    *tls.Config // nil without TLS
	known  known

	complaints complaints // about XFORWARD

	// mustTell is set once the next hop was found not to relay for a stranger
	// that XCLIENT told it of: no connection without XCLIENT carries mail then.
	mustTell atomic.Bool

	// ended is when a connection that could carry mail has been closed last, or was about
	// to be, in nanoseconds since 1970.
	ended atomic.Int64

	// background counts the goroutines that end connections, the one that looks
	// for idle ones and the one that probes. None is started once closed is set.
	background sync.WaitGroup
	done       chan struct{}   // closed by Close
	ctx        context.Context // of probes and checks; ended by Close
	stop       func()
	check      check        // whether a silent server is there
	answered   atomic.Int64 // when it has answered last, on any connection, in nanoseconds since 1970

	mu     sync.Mutex
	closed bool
	idle   []*conn // kept connections; the last was used last
}

var (
	_ Target        = (*SMTP)(nil)
	_ Authenticator = (*SMTP)(nil)
)

// NewSMTP makes a target of a mail server. It does not wait for a connection. The
// target must be closed.
func NewSMTP(config SMTPConfig) (*SMTP, error) {
	if config.Network == "" {
		config.Network = "tcp"
	}
	if _, _, err := net.SplitHostPort(config.Addr); err != nil && config.Network == "tcp" {
		return nil, fmt.Errorf("next hop %q: %w", config.Addr, err)
	}
	if strings.ContainsAny(config.Hostname, "\r\n\x00 ") {
		return nil, fmt.Errorf("next hop %s: host name %q cannot be said in EHLO", config.Addr, config.Hostname)
	}
	if config.Hostname == "" {
		config.Hostname = "localhost"
	}
	if config.MaxIdle == 0 {
		config.MaxIdle = 32
	}
	if config.IdleTimeout == 0 {
		config.IdleTimeout = 30 * time.Second
	}
	if config.ProbeInterval == 0 {
		config.ProbeInterval = time.Minute
	}
	if config.Proxy < 0 || config.Proxy > 2 {
		return nil, fmt.Errorf("next hop %s: PROXY protocol %d: there are versions 1 and 2", config.Addr, config.Proxy)
	}
	if config.Dial == nil {
		config.Dial = new(net.Dialer).DialContext
	}
	config.Timeouts = config.Timeouts.withDefaults()

	s := &SMTP{config: config, log: logger(config.Logger), done: make(chan struct{})}
	s.known.asked = make(chan struct{})
	var err error
	if s.tls, err = newTLS(config.TLS, config.Addr); err != nil {
		return nil, fmt.Errorf("next hop %s: %w", config.Addr, err)
	}
	if config.Reuse {
		s.background.Add(1)
		go s.expire()
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if config.ProbeInterval > 0 {
		s.background.Add(1)
		go s.keepProbing(s.ctx)
	}
	return s, nil
}

// String is the scheme with host and port, or with the path of the socket.
func (s *SMTP) String() string { return s.config.address().String() }

// Begin starts a transaction.
func (s *SMTP) Begin(env Envelope) Transaction {
	t := newTransaction(s, env)
	if s.isClosed() {
		t.err = fmt.Errorf("next hop %s: %w", s, ErrClosed)
	}
	return t
}

func (s *SMTP) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Close says QUIT on every kept connection and waits for the answers, at most
// Timeouts.Quit long.
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
	close(s.done)
	s.stop()
	s.mu.Unlock()
	s.background.Wait()
	return nil
}
