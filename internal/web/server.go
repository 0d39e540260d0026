// Package web serves the gate's pages over HTTP, for people and programs that may be strangers: its
// metrics, the console and published lists.
package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"spamgate/internal/certs"
	"spamgate/internal/socket"
)

// Options configure a Server.
type Options struct {
	Ended string // for the log: it is served no more
	Open  *socket.OpenDoor
	Pages Pages
	Most  int             // connections at once
	Names func() []string // of this machine, among others; nil: Pages checks the field Host
	Log   *slog.Logger
}

// Pages are what a Server serves. Close ends answers that go on by themselves.
type Pages interface {
	http.Handler
	Close()
}

// Server serves one socket.
type Server struct {
	Options
	Certs atomic.Pointer[certs.Reloader] // nil: without TLS

	tls     *tls.Config
	http    *http.Server
	conns   *connections
	serving sync.WaitGroup
}

// Limits of a Server. A page that takes longer sets its own deadlines.
const (
	timeout    = time.Minute
	closeLimit = 2 * time.Second
)

// http2Limits bound what the server keeps of each connection of HTTP/2 before anybody reads it. By
// default that is a MiB for a frame and one for all streams, which 256 strangers fill.
var http2Limits = http.HTTP2Config{
	MaxConcurrentStreams:          16,
	MaxReadFrameSize:              16 << 10, // RFC 9113, section 4.2: the least
	MaxReceiveBufferPerConnection: 64 << 10,
	MaxReceiveBufferPerStream:     64 << 10,
}

// New returns a server that owns the socket. It does not serve yet.
func New(o Options) *Server {
	s := &Server{Options: o, conns: newConnections(o.Most)}
	s.tls = &tls.Config{GetCertificate: s.certificate, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.handle),
		ConnContext:       s.conns.context,
		ReadHeaderTimeout: 10 * time.Second, // also of the TLS handshake
		ReadTimeout:       timeout,
		WriteTimeout:      timeout,
		IdleTimeout:       2 * time.Minute, // longer than the usual scrape interval
		MaxHeaderBytes:    32 << 10,
		HTTP2:             &http2Limits,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	s.http.RegisterOnShutdown(o.Pages.Close)
	return s
}

// handle answers a request, unless it asks for another host.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	defer busy(r)()
	certified := r.TLS != nil && r.TLS.ServerName == nameOf(r.Host) // a browser has checked that
	if s.Names != nil && !certified && foreign(r.Host, s.Names()) {
		http.Error(w, fmt.Sprintf("This gate is not known as %.100q: ask by its IP address, or by a name in the domain of its hostname.", r.Host),
			http.StatusMisdirectedRequest)
		return
	}
	s.Pages.ServeHTTP(w, r)
}

// Serve accepts clients until Retire or Close.
func (s *Server) Serve() {
	s.serving.Go(func() {
		err := s.http.Serve(&secured{&listener{s.Open.Listener, s.conns}, s})
		if !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			s.Log.Error(s.Ended, "addr", s.Open.Addr(), "error", err)
		}
	})
}

// secured makes connections speak TLS if the server has certificates.
type secured struct {
	net.Listener
	server *Server
}

// Accept waits for a connection.
func (l *secured) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if l.server.Certs.Load() == nil {
		return conn, nil
	}
	return tls.Server(conn, l.server.tls), nil
}

// certificate returns the certificate for a client.
func (s *Server) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	reloader := s.Certs.Load()
	if reloader == nil {
		return nil, errors.New("there is no certificate any more")
	}
	return reloader.GetCertificate(hello)
}

// Retire stops accepting clients, which a successor serves from now on, ends answers that go on
// by themselves, and answers one more request of each present client. Close comes later, since it
// drops clients that have not sent a request yet.
func (s *Server) Retire() error {
	s.Open.Share()
	s.http.SetKeepAlivesEnabled(false)
	err := s.Open.Listener.Close()
	s.serving.Wait()
	s.Pages.Close()
	return err
}

// Close stops the server, and waits a moment for requests in progress.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	s.serving.Wait()
	if closed := s.Open.Close(); !errors.Is(closed, net.ErrClosed) {
		err = errors.Join(err, closed)
	}
	return err
}
