package smtpfilter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"

	"github.com/emersion/go-smtp"

	"spamgate/smtpfilter/wire"
)

// Config is what a Server is made of.
type Config struct {
	// Hostname is what the gate calls itself in its replies and trace fields.
	Hostname string

	// ID names the gate to other gates, in the reply to EHLO and in
	// nexthop.SMTPConfig.GateID: printable, no space, and unlike any other gate's.
	// "" tells them nothing.
	ID string

	// Names finds the names of clients for next hops that want to know them; nil
	// means that no client has a name.
	Names Names

	// Log gets a line for every decision; nil means no log.
	Log *slog.Logger

	// ShowAddress is how an address is written to the log; nil means as it is.
	ShowAddress func(address string) string

	// Meter counts connections and messages; nil means that nobody does.
	Meter Meter
}

// Names finds the names of clients: see package clientname. Its methods are safe for
// concurrent use.
type Names interface {
	// Ask begins to look for the name of the client at an address.
	Ask(netip.Addr)

	// Name returns it, or "" if the client has none. It waits for a bounded time,
	// and no longer than the context.
	Name(context.Context, netip.Addr) string
}

// Server is the gate's SMTP server. Clients come in by its ports.
type Server struct {
	cfg    Config
	smtp   *smtp.Server
	ctx    context.Context // ends when sessions must not wait any longer
	cancel context.CancelFunc
	drain  chan struct{} // closed when the shutdown begins

	mu        sync.Mutex
	listeners []*wire.Listener
	closing   bool
	serving   sync.WaitGroup
}

// New makes a Server. It listens nowhere until Port.Serve.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.ShowAddress == nil {
		cfg.ShowAddress = func(a string) string { return a }
	}
	if cfg.Meter == nil {
		cfg.Meter = noMeter{}
	}
	s := &Server{cfg: cfg, drain: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.smtp = smtp.NewServer(smtp.BackendFunc(newSession))
	s.smtp.Domain = cfg.Hostname
	s.smtp.ErrorLog = errorLog{cfg.Log}
	return s
}

// serve takes clients from l until Shutdown, and returns nil then.
func (s *Server) serve(l *wire.Listener) error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return l.Close()
	}
	s.listeners = append(s.listeners, l)
	s.serving.Add(1)
	s.mu.Unlock()
	defer s.serving.Done()

	err := s.smtp.Serve(l)
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
	if !s.closing {
		close(s.drain)
	}
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

// errorLog passes go-smtp's own complaints on.
type errorLog struct{ log *slog.Logger }

func (l errorLog) Printf(format string, v ...any) { l.log.Error(fmt.Sprintf(format, v...)) }
func (l errorLog) Println(v ...any)               { l.log.Error(fmt.Sprint(v...)) }
