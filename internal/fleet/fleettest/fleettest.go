// Package fleettest runs NATS servers for tests.
package fleettest

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Server is a NATS server in the test's process.
type Server struct {
	t    testing.TB
	opts server.Options
	srv  *server.Server
}

// Start starts a server with JetStream. Change, if not nil, changes its options.
func Start(t testing.TB, change func(*server.Options)) *Server {
	t.Helper()
	s := &Server{t: t, opts: server.Options{
		Host: "127.0.0.1", Port: freePort(t), NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: filepath.Join(t.TempDir(), "nats"),
	}}
	if change != nil {
		change(&s.opts)
	}
	s.Restart()
	t.Cleanup(s.Stop)
	return s
}

// Cluster starts n servers that belong together.
func Cluster(t testing.TB, n int) []*Server {
	t.Helper()
	var routes []*url.URL
	ports := make([]int, n)
	for i := range ports {
		ports[i] = freePort(t)
		routes = append(routes, &url.URL{Scheme: "nats", Host: net.JoinHostPort("127.0.0.1", fmt.Sprint(ports[i]))})
	}
	servers := make([]*Server, n)
	for i := range servers {
		servers[i] = Start(t, func(o *server.Options) {
			o.ServerName = fmt.Sprintf("n%d", i)
			o.Cluster = server.ClusterOpts{Name: "spamgate", Host: "127.0.0.1", Port: ports[i]}
			o.Routes = routes
		})
	}
	for _, s := range servers {
		s.waitJetStream()
	}
	return servers
}

// URL returns the URL of the server.
func (s *Server) URL() string { return fmt.Sprintf("nats://127.0.0.1:%d", s.opts.Port) }

// Dir returns the directory of its store.
func (s *Server) Dir() string { return s.opts.StoreDir }

// Connections returns how many clients are connected.
func (s *Server) Connections() int { return s.srv.NumClients() }

// Bytes returns how many bytes clients have sent to the server, and it to them.
func (s *Server) Bytes() (in, out int64) {
	v, err := s.srv.Varz(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return v.InBytes, v.OutBytes
}

// Restart starts the server, which is stopped, on its port and store.
func (s *Server) Restart() {
	s.t.Helper()
	opts := s.opts
	srv, err := server.NewServer(&opts)
	if err != nil {
		s.t.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(20 * time.Second) {
		s.t.Fatal("the NATS server does not start")
	}
	s.srv = srv
}

// Stop stops the server.
func (s *Server) Stop() {
	s.srv.Shutdown()
	s.srv.WaitForShutdown()
}

// waitJetStream waits until the servers of a cluster have found each other.
func (s *Server) waitJetStream() {
	s.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !s.srv.JetStreamIsCurrent(); {
		if time.Now().After(deadline) {
			s.t.Fatal("the cluster has no leader")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
