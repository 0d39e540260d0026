package gate

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"spamgate/internal/admin"
)

// metricsServer serves metrics over TCP, and whether the gate lives and is ready. Everyone who
// can reach it can read them.
type metricsServer struct {
	listener net.Listener
	key      string // the address it was opened for, as in socket.SocketsVariable
	http     *http.Server
	serving  sync.WaitGroup
}

// Limits of the server. Prometheus asks a few times a minute.
const (
	metricsConnections = 64
	metricsTimeout     = 30 * time.Second
	metricsCloseLimit  = 2 * time.Second
)

// serveMetrics serves metrics and the paths of probes on l until Close. It takes ownership of l.
func serveMetrics(l net.Listener, key string, metrics, probes http.Handler, log *slog.Logger) *metricsServer {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	for _, path := range admin.ProbePaths {
		mux.Handle(path, probes)
	}
	s := &metricsServer{
		listener: l,
		key:      key,
		http: &http.Server{
			Handler:           mux,
			ReadHeaderTimeout: 10 * time.Second,
			ReadTimeout:       10 * time.Second,
			WriteTimeout:      metricsTimeout,
			IdleTimeout:       2 * time.Minute, // longer than the usual scrape interval
			MaxHeaderBytes:    16 << 10,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
	}
	s.serving.Go(func() {
		err := s.http.Serve(netutil.LimitListener(l, metricsConnections))
		if !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			log.Error("metrics are served no more", "addr", l.Addr().String(), "error", err)
		}
	})
	return s
}

// retire stops accepting clients, which a successor serves from now on, and answers one more
// request of each present client. Close comes later, since it drops clients that have not
// sent a request yet.
func (s *metricsServer) retire() error {
	s.http.SetKeepAlivesEnabled(false)
	err := s.listener.Close()
	s.serving.Wait()
	return err
}

// Close stops the server, and waits a moment for requests in progress.
func (s *metricsServer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), metricsCloseLimit)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	s.serving.Wait()
	return err
}
