// Package natsserver runs a NATS server with JetStream in this process, which is spamgate-fleetd, for
// fleets without one of their own. It is the only package that imports the server's code.
//
// A server acknowledges a write once it is on disk. Clients and other servers need the
// credentials of the fleet; servers speak TLS to each other, with keys made of them. If JetStream has
// stopped, because the disk was full or could not be written, the server starts again until it works.
package natsserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/nats-io/nats-server/v2/server"

	"spamgate/internal/atomicfile"
	"spamgate/internal/certs"
	"spamgate/internal/config"
)

// Options say what a server is.
type Options struct {
	Name   string // of the server: no two of a cluster may have one
	Listen string // "host:port" for clients

	Cluster string   // "host:port" for other servers; empty: the server is alone
	Routes  []string // "nats://host:port" of the other servers' Cluster

	Dir string // of the store

	Credentials string // a file, see package credentials; empty: everyone may connect

	Cert, Key string // PEM files, for clients; empty: no TLS

	Logger *slog.Logger // nil: no log

	// For tests.
	check time.Duration // between two looks at JetStream
}

// FromConfig returns the options of [fleet.server].
func FromConfig(c *config.Config, log *slog.Logger) Options {
	f := &c.Fleet
	return Options{
		Name: f.Name, Listen: f.Server.Listen, Cluster: f.Server.Cluster, Routes: f.Server.Routes,
		Dir: f.Server.Dir, Credentials: f.Credentials,
		Cert: f.Server.TLSCert, Key: f.Server.TLSKey, Logger: log,
	}
}

// Why a server does not start. Use errors.Is.
var (
	// ErrLocked says that another process has the store.
	ErrLocked = errors.New("another process uses this store, and two would destroy it: stop the other spamgate-fleetd (systemctl status spamgate-fleetd), or the gate of an earlier version, which runs the server itself")

	// ErrCredentials says that the server cannot check the credentials.
	ErrCredentials = errors.New("spamgate-fleetd checks a shared token or the seed of an nkey; a NATS user needs a NATS server with the operator's keys")
)

// Server is a running server. Its methods are safe for concurrent use.
type Server struct {
	o     Options
	log   *slog.Logger
	peers []string                       // the routes to other servers
	certs atomic.Pointer[certs.Reloader] // nil without TLS

	unlock func() // gives the store to others
	cancel context.CancelFunc
	wg     sync.WaitGroup
	close  sync.Once

	mu   sync.Mutex
	nats *server.Server // nil while it is started again
	out  *output        // its log
	err  error          // why it does not run
}

// startTime bounds a start. A store of some gigabytes is read within seconds.
const startTime = time.Minute

// Start starts a server. It returns when clients can connect; with other servers they may have
// no quorum yet.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.check == 0 {
		o.check = 5 * time.Second
	}
	s := &Server{o: o, log: o.Logger}
	s.peers = s.others()
	if err := s.open(ctx); err != nil {
		s.release()
		return nil, err
	}
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.wg.Go(func() { s.watch(ctx) })
	s.log.Info("server of the fleet runs", "name", o.Name, "addr", o.Listen, "servers", s.servers(), "dir", o.Dir)
	return s, nil
}

// open takes the store and starts the server.
func (s *Server) open(ctx context.Context) error {
	if s.o.Cluster != "" && len(s.o.Routes) == 0 {
		return errors.New(`cluster has no effect without the other servers: name all of them in routes`)
	}
	if err := s.lock(); err != nil {
		return err
	}
	if err := s.ReadCertificates(); err != nil {
		return err
	}
	return s.run(ctx)
}

// ReadCertificates reads the certificate for clients from its files, as the server also does when they
// change. After an error it goes on with the old one.
func (s *Server) ReadCertificates() error {
	if s.o.Cert == "" {
		return nil
	}
	fresh, err := certs.Open([]certs.Files{{Cert: s.o.Cert, Key: s.o.Key}}, certs.Options{Logger: s.log})
	if err != nil {
		return err
	}
	if old := s.certs.Swap(fresh); old != nil {
		return old.Close()
	}
	return nil
}

// lock takes the store. The lock ends with the process.
func (s *Server) lock() error {
	if err := atomicfile.MakeDirs(s.o.Dir); err != nil {
		return err
	}
	var err error
	s.unlock, err = atomicfile.In(s.o.Dir).TryLock(".")
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("%s: %w", s.o.Dir, ErrLocked)
	}
	return err
}

// run starts the NATS server, and waits until it listens.
func (s *Server) run(ctx context.Context) error {
	if err := s.portsFree(); err != nil {
		return err
	}
	o, err := s.natsOptions()
	if err != nil {
		return err
	}
	n, err := server.NewServer(o)
	if err != nil {
		return err
	}
	out := newOutput(s.log)
	out.credentials = s.o.Credentials
	n.SetLoggerV2(out, false, false, false)
	n.Start()
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for !n.ReadyForConnections(25 * time.Millisecond) {
		if err = errors.Join(out.fatal(), ctx.Err()); err != nil {
			break
		}
	}
	if err == nil {
		err = out.fatal() // a part that does not count as a listener
	}
	if err != nil {
		shutdown(n)
		if hint := hint(err.Error()); hint != "" {
			err = fmt.Errorf("%w: %s", err, hint)
		}
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nats, s.out, s.err = n, out, nil
	return nil
}

// portsFree returns a clear error if another program has a port.
func (s *Server) portsFree() error {
	for _, addr := range []string{s.o.Listen, s.o.Cluster} {
		if addr == "" {
			continue
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return fmt.Errorf("%w: give the server another port, or stop the program that has it (ss -ltnp)", err)
		}
		l.Close()
	}
	return nil
}

// watch starts the server again when JetStream has stopped, and logs how the servers are.
func (s *Server) watch(ctx context.Context) {
	const most = 5 * time.Minute
	pause, told := s.o.check, ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if s.works() {
			pause, told = s.o.check, s.tell(told)
			continue
		}
		s.log.Warn("server of the fleet starts again, since its store has failed", "dir", filepath.Clean(s.o.Dir), "error", s.reason())
		s.stop()
		err := s.run(ctx)
		if err == nil && s.works() {
			s.log.Info("server of the fleet runs again")
			continue
		}
		s.mu.Lock()
		s.err = err
		s.mu.Unlock()
		s.tell(told)
		pause = min(2*pause, most)
	}
}

// tell tells systemd how the server is, and logs which servers are missing if that has changed since it was told.
// It returns what is told now.
func (s *Server) tell(told string) string {
	st := s.Status()
	_, _ = daemon.SdNotify(false, "STATUS="+st.String()) // for systemctl status
	current := st.Problem()
	switch {
	case current == told, !st.Running:
		return told
	case current != "":
		s.log.Warn("servers of the fleet are missing", "problem", current)
	default:
		s.log.Info("servers of the fleet are connected", "servers", st.Servers, "leader", st.Leader)
	}
	return current
}

// works reports whether JetStream runs.
func (s *Server) works() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nats != nil && s.nats.JetStreamEnabled()
}

// reason returns why the server does not work.
func (s *Server) reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && s.out != nil {
		return errors.New(s.out.last())
	}
	return s.err
}

// Close stops the server. When it returns, another process can use the store.
func (s *Server) Close() {
	s.close.Do(func() {
		s.cancel()
		s.wg.Wait()
		s.stop()
		s.release()
		s.log.Info("server of the fleet has stopped")
	})
}

func (s *Server) stop() {
	s.mu.Lock()
	n := s.nats
	s.nats = nil
	s.mu.Unlock()
	if n != nil {
		shutdown(n)
	}
}

func shutdown(n *server.Server) {
	n.Shutdown()
	n.WaitForShutdown()
}

func (s *Server) release() {
	if c := s.certs.Load(); c != nil {
		c.Close()
	}
	if s.unlock != nil {
		s.unlock()
	}
}
