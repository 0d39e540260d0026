package gate

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"spamgate/internal/certs"
	"spamgate/internal/console"
	"spamgate/internal/setup"
	"spamgate/internal/socket"
)

// consoleServer serves the console at one socket.
type consoleServer struct {
	open    *socket.OpenDoor
	pages   consolePages
	certs   atomic.Pointer[certs.Reloader] // nil: without TLS
	tls     *tls.Config
	http    *http.Server
	conns   *console.Connections
	log     *slog.Logger
	serving sync.WaitGroup
}

// consolePages are what the server serves. Close ends answers that go on by themselves.
type consolePages interface {
	http.Handler
	Close()
}

// Limits of the server. A page that takes longer sets its own deadlines.
const (
	consoleTimeout    = time.Minute
	consoleCloseLimit = 2 * time.Second
	consoleStreams    = 16 // requests at once in one connection of HTTP/2
)

// newConsoleServer returns a server that owns the socket. It does not serve yet.
func newConsoleServer(open *socket.OpenDoor, pages consolePages, log *slog.Logger) *consoleServer {
	s := &consoleServer{open: open, pages: pages, log: log, conns: console.NewConnections(setup.ConsoleConnections)}
	s.tls = &tls.Config{GetCertificate: s.certificate, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	s.http = &http.Server{
		Handler:           pages,
		ConnContext:       s.conns.Context,
		ReadHeaderTimeout: 10 * time.Second, // also of the TLS handshake
		ReadTimeout:       consoleTimeout,
		WriteTimeout:      consoleTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: consoleStreams},
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	s.http.RegisterOnShutdown(pages.Close)
	return s
}

// serve accepts clients until retire or Close.
func (s *consoleServer) serve() {
	s.serving.Go(func() {
		err := s.http.Serve(&consoleListener{s.conns.Listener(s.open.Listener), s})
		if !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			s.log.Error("the console is served no more", "addr", s.open.Addr(), "error", err)
		}
	})
}

// consoleListener makes connections speak TLS if the console has certificates.
type consoleListener struct {
	net.Listener
	server *consoleServer
}

// Accept waits for a connection.
func (l *consoleListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if l.server.certs.Load() == nil {
		return conn, nil
	}
	return tls.Server(conn, l.server.tls), nil
}

// certificate returns the certificate for a client.
func (s *consoleServer) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	now := s.certs.Load()
	if now == nil {
		return nil, errors.New("the console has no certificate any more")
	}
	return now.GetCertificate(hello)
}

// retire stops accepting clients, which a successor serves from now on, ends answers that go on
// by themselves, and answers one more request of each present client.
func (s *consoleServer) retire() error {
	s.open.Share()
	s.http.SetKeepAlivesEnabled(false)
	err := s.open.Listener.Close()
	s.serving.Wait()
	s.pages.Close()
	return err
}

// Close stops the server, and waits a moment for requests in progress.
func (s *consoleServer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), consoleCloseLimit)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	s.serving.Wait()
	if closed := s.open.Close(); !errors.Is(closed, net.ErrClosed) {
		err = errors.Join(err, closed)
	}
	return err
}
