package smtpfilter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/emersion/go-smtp"

	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// Config is what a Server is made of.
type Config struct {
	// Wire holds the host name, limits and time-outs towards clients.
	Wire wire.Config

	// Checker judges the senders.
	Checker Checker

	// Settings is what Apply may change later.
	Settings Settings

	// Resolver finds the names of clients for next hops that want to know them;
	// nil means that no client has a name. It is asked once for a connection,
	// and only when its mail is passed on.
	Resolver Resolver

	// Log gets a line for every decision; nil means no log.
	Log *slog.Logger

	// ShowAddress is how an address is written to the log; nil means as it is.
	ShowAddress func(address string) string
}

// Server is the gate's SMTP server.
type Server struct {
	cfg      Config
	smtp     *smtp.Server
	settings atomic.Pointer[Settings]
	ctx      context.Context // ends when sessions must not wait any longer
	cancel   context.CancelFunc

	mu        sync.Mutex
	listeners []*wire.Listener
	closing   bool
	serving   sync.WaitGroup
}

// New makes a Server. It listens nowhere until Serve.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.ShowAddress == nil {
		cfg.ShowAddress = func(a string) string { return a }
	}
	s := &Server{cfg: cfg}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.settings.Store(&cfg.Settings)
	s.smtp = smtp.NewServer(smtp.BackendFunc(s.newSession))
	s.smtp.Domain = cfg.Wire.Hostname
	s.smtp.ErrorLog = errorLog{cfg.Log}
	return s
}

// Apply changes the settings for the messages to come and returns those it
// replaces; their NextHop may be closed.
func (s *Server) Apply(settings Settings) (old Settings) {
	return *s.settings.Swap(&settings)
}

// Serve takes clients from l until Shutdown, and returns nil then. It becomes
// the owner of l.
func (s *Server) Serve(l net.Listener) error {
	cfg := s.cfg.Wire
	cfg.Closed, cfg.Refused = s.closed, s.refused
	wl := wire.NewListener(l, cfg)
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return l.Close()
	}
	s.listeners = append(s.listeners, wl)
	s.serving.Add(1)
	s.mu.Unlock()
	defer s.serving.Done()

	err := s.smtp.Serve(wl)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("accepting on %s: %w", l.Addr(), err)
}

// Shutdown closes the listeners, tells idle clients 421 and waits until open
// transactions have ended. When ctx ends, those still under way get 421, except
// where the next hop was given a whole message and has not answered: its answer
// is waited for, since without it nobody would know whose the message is.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	listeners := s.listeners
	s.mu.Unlock()
	defer context.AfterFunc(ctx, s.cancel)()

	var errs []error
	for _, l := range listeners {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	s.serving.Wait() // nobody new gets in from here on
	var wg sync.WaitGroup
	for _, l := range listeners {
		wg.Go(func() { l.Drain(ctx) })
	}
	wg.Wait()
	s.cancel()
	return errors.Join(errs...)
}

// closed hears of every connection's end.
func (s *Server) closed(c *wire.Conn) {
	s.logClosed(c)
	if s.cfg.Wire.Closed != nil {
		s.cfg.Wire.Closed(c)
	}
}

// refused hears of every MAIL and RCPT that no session has seen.
func (s *Server) refused(c *wire.Conn, line string, r wire.Reply) {
	s.logBadCommand(c, line, r)
	if s.cfg.Wire.Refused != nil {
		s.cfg.Wire.Refused(c, line, r)
	}
}

// newSession is go-smtp's Backend: it runs at the first HELO or EHLO.
func (s *Server) newSession(c *smtp.Conn) (smtp.Session, error) {
	conn, ok := c.Conn().(*wire.Conn)
	if !ok {
		return nil, errors.New("smtpfilter: the connection is not a wire.Conn")
	}
	return &session{server: s, conn: conn, addr: clientAddr(conn)}, nil
}

// clientAddr is the client's address. An IPv4 client is one on a socket for both
// families, too. A zone says which of our interfaces it came by, and is left
// out.
func clientAddr(c *wire.Conn) netip.AddrPort {
	a, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	addr := a.AddrPort()
	return netip.AddrPortFrom(addr.Addr().Unmap().WithZone(""), addr.Port())
}

// client describes the client to the next hop.
func (s *session) client() nexthop.Client {
	c := nexthop.Client{Addr: s.addr, Proto: "SMTP", Name: s.name}
	if r := s.server.cfg.Resolver; r != nil && !s.named {
		c.LookupName = func(ctx context.Context) string {
			s.name, s.named = lookupName(ctx, r, s.addr.Addr()), true
			return s.name
		}
	}
	var extended bool
	if c.Helo, extended = s.conn.Helo(); extended {
		c.Proto = "ESMTP"
	}
	return c
}

// errorLog passes go-smtp's own complaints on.
type errorLog struct{ log *slog.Logger }

func (l errorLog) Printf(format string, v ...any) { l.log.Error(fmt.Sprintf(format, v...)) }
func (l errorLog) Println(v ...any)               { l.log.Error(fmt.Sprint(v...)) }
