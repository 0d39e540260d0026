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
	"spamgate/internal/socket"
)

// webServer serves the console, or published lists, at one socket.
type webServer struct {
	ended   string // for the log: it is served no more
	open    *socket.OpenDoor
	pages   webPages
	certs   atomic.Pointer[certs.Reloader] // nil: without TLS
	tls     *tls.Config
	http    *http.Server
	conns   *console.Connections
	log     *slog.Logger
	serving sync.WaitGroup
}

// webPages are what the server serves. Close ends answers that go on by themselves.
type webPages interface {
	http.Handler
	Close()
}

// Limits of the server. A page that takes longer sets its own deadlines.
const (
	webTimeout    = time.Minute
	webCloseLimit = 2 * time.Second
	webStreams    = 16 // requests at once in one connection of HTTP/2
)

// newWebServer returns a server that owns the socket. It does not serve yet.
func newWebServer(ended string, open *socket.OpenDoor, pages webPages, most int, log *slog.Logger) *webServer {
	s := &webServer{ended: ended, open: open, pages: pages, log: log, conns: console.NewConnections(most)}
	s.tls = &tls.Config{GetCertificate: s.certificate, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	s.http = &http.Server{
		Handler:           pages,
		ConnContext:       s.conns.Context,
		ReadHeaderTimeout: 10 * time.Second, // also of the TLS handshake
		ReadTimeout:       webTimeout,
		WriteTimeout:      webTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: webStreams},
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	s.http.RegisterOnShutdown(pages.Close)
	return s
}

// serve accepts clients until retire or Close.
func (s *webServer) serve() {
	s.serving.Go(func() {
		err := s.http.Serve(&webListener{s.conns.Listener(s.open.Listener), s})
		if !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			s.log.Error(s.ended, "addr", s.open.Addr(), "error", err)
		}
	})
}

// webListener makes connections speak TLS if the server has certificates.
type webListener struct {
	net.Listener
	server *webServer
}

// Accept waits for a connection.
func (l *webListener) Accept() (net.Conn, error) {
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
func (s *webServer) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	now := s.certs.Load()
	if now == nil {
		return nil, errors.New("there is no certificate any more")
	}
	return now.GetCertificate(hello)
}

// retire stops accepting clients, which a successor serves from now on, ends answers that go on
// by themselves, and answers one more request of each present client.
func (s *webServer) retire() error {
	s.open.Share()
	s.http.SetKeepAlivesEnabled(false)
	err := s.open.Listener.Close()
	s.serving.Wait()
	s.pages.Close()
	return err
}

// Close stops the server, and waits a moment for requests in progress.
func (s *webServer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), webCloseLimit)
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
