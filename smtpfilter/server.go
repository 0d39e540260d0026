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
	cfg.Closed = s.logClosed
	wl := wire.NewListener(l, cfg)
	s.mu.Lock()
	s.listeners = append(s.listeners, wl)
	closing := s.closing
	s.mu.Unlock()
	if closing {
		return l.Close()
	}
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

	errs := make([]error, len(listeners))
	var wg sync.WaitGroup
	for i, l := range listeners {
		wg.Go(func() { errs[i] = l.Shutdown(ctx) })
	}
	wg.Wait()
	s.cancel()
	return errors.Join(errs...)
}

// newSession is go-smtp's Backend: it runs at the first HELO or EHLO.
func (s *Server) newSession(c *smtp.Conn) (smtp.Session, error) {
	conn, ok := c.Conn().(*wire.Conn)
	if !ok {
		return nil, errors.New("smtpfilter: the connection is not a wire.Conn")
	}
	addr := netip.AddrPort{}
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		addr = a.AddrPort()
	}
	return &session{server: s, conn: conn, addr: addr}, nil
}

// client describes the client to the next hop.
func (s *session) client() nexthop.Client {
	c := nexthop.Client{Addr: s.addr, Proto: "SMTP"}
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
