package gate

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"spamgate/internal/fleet/natsserver"
)

// fleetServer is the server of [fleet.server], while the gate is a member.
type fleetServer struct {
	cancel context.CancelFunc
	done   chan struct{}
	runs   atomic.Pointer[natsserver.Server] // nil: not yet, or there is none to be
}

// startServer begins to start the server, if there is one to be. A gate that cannot run it may be
// a member of the other servers.
func (f *fleetPart) startServer() *fleetServer {
	ctx, cancel := context.WithCancel(context.Background())
	s := &fleetServer{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		f.keepServer(ctx, s)
	}()
	return s
}

// keepServer runs the server until ctx ends.
func (f *fleetPart) keepServer(ctx context.Context, s *fleetServer) {
	c := f.config()
	if c.Fleet.Server.Listen == "" {
		return
	}
	for logged := ""; ctx.Err() == nil; pause(ctx, fleetRetry) {
		server, err := natsserver.Start(ctx, natsserver.FromConfig(c, f.log))
		if err == nil {
			s.runs.Store(server)
			<-ctx.Done()
			server.Close()
			return
		}
		if err.Error() != logged {
			logged = err.Error()
			f.log.Error("this gate cannot run the server of its fleet", "error", err)
		}
	}
}

// close stops the server.
func (s *fleetServer) close() {
	s.cancel()
	<-s.done
}

var errNoServer = errors.New("the server in this gate does not run: the log says why")

// InProcessConn implements nats.InProcessConnProvider.
func (s *fleetServer) InProcessConn() (net.Conn, error) {
	server := s.runs.Load()
	if server == nil {
		return nil, errNoServer
	}
	return server.InProcessConn()
}
