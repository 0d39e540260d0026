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

	"spamgate/smtpfilter/wire"
)

// Config is the configuration of a Server.
type Config struct {
	// Hostname is the gate's name in its replies and trace fields.
	Hostname string

	// ID identifies the gate to other gates, in the reply to EHLO and in
	// nexthop.SMTPConfig.GateID. It is printable, without space, and unlike any other
	// gate's. "" identifies it to nobody.
	ID string

	// Names looks up the names of clients for next hops that want them; nil means
	// that no client has a name.
	Names Names

	// Log gets a line for every decision; nil means no log.
	Log *slog.Logger

	// ShowAddress returns an address as the log shows it; nil means unchanged.
	ShowAddress func(address string) string

	// History takes every decision, whatever the level of Log; nil means none.
	History History

	// Meter counts connections and messages; nil means no counts.
	Meter Meter
}

// Names looks up the names of clients: see package clientname. Its methods are safe for
// concurrent use.
type Names interface {
	// Ask begins to look up the name of the client at an address.
	Ask(netip.Addr)

	// Name returns that name, or "" if the client has none. It waits for a bounded
	// time, and not after the context ends.
	Name(context.Context, netip.Addr) string
}

// Server is an SMTP server that judges senders and passes mail on. Clients connect to its
// Listeners.
type Server struct {
	cfg    Config
	smtp   *smtp.Server
	ctx    context.Context // ends when sessions must not wait any longer
	cancel context.CancelFunc
	drain  chan struct{} // closed at the start of Shutdown
	cutOff atomic.Bool   // a session ended with a message under way

	mu        sync.Mutex
	listeners []*wire.Listener
	closing   bool
	serving   sync.WaitGroup
}

// New returns a Server without a Listener.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.ShowAddress == nil {
		cfg.ShowAddress = func(a string) string { return a }
	}
	if cfg.Meter == nil {
		cfg.Meter = NoMeter{}
	}
	s := &Server{cfg: cfg, drain: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.smtp = smtp.NewServer(smtp.BackendFunc(newSession))
	s.smtp.Domain = cfg.Hostname
	s.smtp.ErrorLog = errorLog{cfg.Log}
	return s
}

// decisions returns the log of decisions.
func (s *Server) decisions() DecisionLog {
	return DecisionLog{s.cfg.Log, s.cfg.ShowAddress, s.cfg.History}
}

// serve accepts clients from l until Shutdown, and returns nil then.
func (s *Server) serve(l *wire.Listener) error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return nil
	}
	s.serving.Add(1)
	s.mu.Unlock()
	defer s.serving.Done()

	err := s.smtp.Serve(l)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("accepting on %s: %w", l.Addr(), err)
}

// Shutdown closes all Listeners, replies 421 to idle clients and waits for the end of open
// transactions. When ctx ends, it replies 421 to those too and returns the context's
// error. It still waits for the reply to a message that the next hop has received whole:
// without that reply nobody would know whether the message was delivered.
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
	s.serving.Wait() // from here on there are no new clients
	var wg sync.WaitGroup
	for _, l := range listeners {
		wg.Go(func() { l.Drain(s.ctx) }) // s.ctx ends before the sessions that Drain interrupts
	}
	wg.Wait()
	s.cancel()
	if !s.cutOff.Load() {
		return errors.Join(errs...)
	}
	if errs == nil {
		return ctx.Err()
	}
	return errors.Join(append(errs, ctx.Err())...)
}

// errorLog logs go-smtp's own errors.
type errorLog struct{ log *slog.Logger }

func (l errorLog) Printf(format string, v ...any) { l.log.Error(fmt.Sprintf(format, v...)) }
func (l errorLog) Println(v ...any)               { l.log.Error(fmt.Sprint(v...)) }
