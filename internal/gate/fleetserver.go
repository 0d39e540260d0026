package gate

import (
	"context"
	"errors"
	"net"
	"sync"

	"spamgate/internal/config"
	"spamgate/internal/fleet"
	"spamgate/internal/fleet/natsserver"
)

// fleetServer is the server of [fleet.server]. It runs while the gate is a member, and also after
// it has left the fleet: other gates may need its vote.
type fleetServer struct {
	config config.Fleet
	cancel context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex
	runs *natsserver.Server // nil: not yet, or not any more
	why  error              // why it does not run
}

// startServer begins to start the server; it returns nil if there is none to be. A gate that
// cannot run it may be a member of the other servers.
func (f *fleetPart) startServer() *fleetServer {
	c := f.config()
	if c.Fleet.Server.Listen == "" {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &fleetServer{config: c.Fleet, cancel: cancel, done: make(chan struct{}), why: errNoServer}
	f.setServer(s)
	go func() {
		defer close(s.done)
		f.keepServer(ctx, s, natsserver.FromConfig(c, f.log))
	}()
	return s
}

// endServer stops the server that startServer has returned.
func (f *fleetPart) endServer(s *fleetServer) {
	if s != nil {
		s.cancel()
		<-s.done
		f.setServer(nil)
	}
}

func (f *fleetPart) setServer(s *fleetServer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.server = s
}

// keepServer runs the server until ctx ends.
func (f *fleetPart) keepServer(ctx context.Context, s *fleetServer, o natsserver.Options) {
	for logged := ""; ctx.Err() == nil; pause(ctx, fleetRetry) {
		server, err := natsserver.Start(ctx, o)
		s.set(server, err)
		if err == nil {
			<-ctx.Done()
			s.set(nil, errNoServer)
			server.Close()
			return
		}
		if err.Error() != logged {
			logged = err.Error()
			f.log.Error("this gate cannot run the server of its fleet", "error", err)
		}
	}
}

func (s *fleetServer) set(runs *natsserver.Server, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs, s.why = runs, why
}

var errNoServer = errors.New("the server in this gate does not run yet")

// InProcessConn implements nats.InProcessConnProvider.
func (s *fleetServer) InProcessConn() (net.Conn, error) {
	s.mu.Lock()
	server, why := s.runs, s.why
	s.mu.Unlock()
	if server == nil {
		return nil, why
	}
	return server.InProcessConn()
}

// status returns how the server is.
func (s *fleetServer) status() *fleet.ServerStatus {
	s.mu.Lock()
	server, why := s.runs, s.why
	s.mu.Unlock()
	if server != nil {
		st := server.Status()
		return &st
	}
	st := &fleet.ServerStatus{Name: s.config.Name, Listen: s.config.Server.Listen}
	if why != nil {
		st.Problems = []string{"it does not run: " + why.Error()}
	}
	return st
}

// serverStatus returns the state of the server in the gate; nil: it has none.
func (f *fleetPart) serverStatus() *fleet.ServerStatus {
	f.mu.Lock()
	s := f.server
	f.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.status()
}
