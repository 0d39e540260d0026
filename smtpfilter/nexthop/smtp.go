package nexthop

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"
)

// Timeouts bound each wait for the next hop. Zero means the value of RFC 5321,
// section 4.5.3.2, where it has one.
type Timeouts struct {
	Connect  time.Duration // TCP connection; zero is 30 s
	Greeting time.Duration // the 220; zero is 5 min
	Mail     time.Duration // reply to EHLO, XFORWARD and MAIL; zero is 5 min
	Rcpt     time.Duration // reply to RCPT; zero is 5 min
	Data     time.Duration // reply to DATA; zero is 2 min
	Write    time.Duration // one write to the connection; zero is 3 min
	Dot      time.Duration // reply to the final dot; zero is 10 min
	Quit     time.Duration // goodbye, RSET or QUIT, which nobody waits for; zero is 5 s
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
	return t
}

// SMTPConfig says where an SMTP next hop is and how to speak with it.
type SMTPConfig struct {
	Addr     string // host:port
	Hostname string // what we call ourselves in EHLO; "" is "localhost"

	// Reuse keeps a connection for later messages. Without it each
	// transaction has its own.
	Reuse bool

	// MaxIdle is the number of connections kept while they carry nothing;
	// zero is 32. A server that gives each connection a process (Postfix:
	// 100 of them by default) should have room for them.
	MaxIdle int

	// IdleTimeout is how long such a connection is kept; zero is 30 s. It ends
	// at most half as much later.
	IdleTimeout time.Duration

	Timeouts Timeouts

	// Dial connects; nil is net.Dialer. The context ends after
	// Timeouts.Connect.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// Logger hears what changes no reply: a refused XFORWARD, a kept
	// connection that was found dead. Nil discards it.
	Logger *slog.Logger
}

// SMTP is a mail server that takes mail over SMTP.
type SMTP struct {
	config SMTPConfig
	log    *slog.Logger

	// background counts the goroutines that end connections, and the one that
	// looks for idle ones. None is started once closed is set.
	background sync.WaitGroup
	done       chan struct{} // closed by Close

	mu     sync.Mutex
	closed bool
	idle   []*conn // kept connections; the last was used last
}

var _ Target = (*SMTP)(nil)

// NewSMTP makes a target of a mail server. It does not connect. The target must
// be closed.
func NewSMTP(config SMTPConfig) (*SMTP, error) {
	if _, _, err := net.SplitHostPort(config.Addr); err != nil {
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
	if config.Dial == nil {
		config.Dial = new(net.Dialer).DialContext
	}
	config.Timeouts = config.Timeouts.withDefaults()

	s := &SMTP{config: config, log: logger(config.Logger), done: make(chan struct{})}
	if config.Reuse {
		s.background.Add(1)
		go s.expire()
	}
	return s, nil
}

// String is "smtp://" with host and port.
func (s *SMTP) String() string { return SchemeSMTP + "://" + s.config.Addr }

// Begin starts a transaction.
func (s *SMTP) Begin(env Envelope) Transaction {
	t := &transaction{hop: s, env: env}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		t.err = fmt.Errorf("next hop %s: %w", s, ErrClosed)
	}
	return t
}

// Close says QUIT on every kept connection and waits for the answers, at most
// Timeouts.Quit long.
func (s *SMTP) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	for _, c := range s.idle {
		s.startQuit(c)
	}
	s.idle = nil
	s.closed = true
	close(s.done)
	s.mu.Unlock()
	s.background.Wait()
	return nil
}
