package rhsbl

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"

	"spamgate/blocklist"
	"spamgate/blocklist/judge"
	"spamgate/blocklist/verdict"
	"spamgate/internal/door"
	"spamgate/smtpfilter"
)

// Store has the present lists. A store.Store is one.
type Store interface {
	Set() *blocklist.Set
	Await(ctx context.Context, generation uint64) (*blocklist.Set, error)
}

// Config is what a Server keeps for life.
type Config struct {
	Name  string           // of the server, in the log and in metrics
	Log   *slog.Logger     // nil: no log
	Meter smtpfilter.Meter // counts the connections over TCP; nil: not counted
	Store Store
}

// Server answers questions about the lists. It is safe for concurrent use.
type Server struct {
	config  Config
	serial  uint32 // of generation 0
	state   atomic.Pointer[state]
	index   atomic.Pointer[index]
	limiter limiter
	counts  counts
	door    *door.Door
	tcp     *door.Server

	ctx       context.Context // ends with Shutdown
	cancel    context.CancelFunc
	interrupt atomic.Pointer[context.CancelFunc] // stops waiting for the next Set
	indexed   chan struct{}                      // closed when there is an index
	running   sync.WaitGroup

	mu      sync.Mutex
	ended   bool
	sockets map[*net.UDPConn]bool
}

// state is the settings in effect, and what follows from them. It is immutable.
type state struct {
	Settings
	checker judge.Checker
	message *verdict.Message // what every question is part of
	ttl     uint32
}

// protocol is the door's name in the log.
const protocol = "dns"

// New returns a Server. It indexes the lists in the background, until Shutdown.
func New(c Config, s Settings) (*Server, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	srv := &Server{config: c, serial: uint32(time.Now().Unix()), sockets: map[*net.UDPConn]bool{}, indexed: make(chan struct{})}
	srv.limiter.init()
	srv.door = door.New(door.Config{Protocol: protocol, Name: c.Name, Log: c.Log, Meter: c.Meter}, door.Settings{})
	srv.tcp = door.NewServer(srv.door, srv.serveConn)
	if err := srv.Apply(s); err != nil {
		return nil, err
	}
	srv.ctx, srv.cancel = context.WithCancel(context.Background())
	srv.running.Go(srv.keepIndex)
	return srv, nil
}

// WaitIndexed waits until the lists are indexed. Before that hashes are answered with SERVFAIL.
func (s *Server) WaitIndexed(ctx context.Context) error {
	select {
	case <-s.indexed:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Apply replaces the settings. On an error nothing changes.
func (s *Server) Apply(settings Settings) error {
	if err := settings.check(); err != nil {
		return err
	}
	s.state.Store(&state{
		Settings: settings,
		checker:  judge.Checker{Store: s.config.Store, Lists: settings.Lists},
		message:  &verdict.Message{Door: protocol, Listener: s.config.Name},
		ttl:      uint32(settings.TTL / time.Second),
	})
	s.door.Apply(door.Settings{MaxConnections: settings.MaxConnections})
	if interrupt := s.interrupt.Load(); interrupt != nil {
		(*interrupt)()
	}
	return nil
}

// Shutdown stops reading questions, waits until those that were read are answered, and closes
// the sockets. When ctx ends it closes them at once.
func (s *Server) Shutdown(ctx context.Context) error {
	s.cancel()
	s.mu.Lock()
	s.ended = true
	for c := range s.sockets {
		c.SetReadDeadline(time.Unix(1, 0))
	}
	s.mu.Unlock()
	err := s.tcp.Shutdown(ctx)
	s.running.Wait() // for answers over UDP, which wait for nothing, and for the index
	return err
}

// begin notes a socket, which Shutdown waits for until end is called. It reports whether
// the socket may be used: not after Shutdown.
func (s *Server) begin(c *net.UDPConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.sockets[c] = true
	s.running.Add(1)
	return true
}

// end closes a socket.
func (s *Server) end(c *net.UDPConn) {
	c.Close()
	s.mu.Lock()
	delete(s.sockets, c)
	s.mu.Unlock()
	s.running.Done()
}

// soa returns the SOA of a zone: by it resolvers keep that a name does not exist. The serial
// grows with the generation of the lists, and from one start to the next.
func (s *Server) soa(st *state, zone string, generation uint64) *dns.SOA {
	return &dns.SOA{
		Hdr:     dns.RR_Header{Name: zone, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: st.ttl},
		Ns:      st.Hostname,
		Mbox:    "postmaster." + st.Hostname,
		Serial:  s.serial + uint32(generation),
		Refresh: 3600,
		Retry:   600,
		Expire:  86400,
		Minttl:  st.ttl,
	}
}
