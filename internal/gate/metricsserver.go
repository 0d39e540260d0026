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
)

// metricsServer serves metrics over TCP, and nothing else: whoever can reach it
// can read them.
type metricsServer struct {
	listener net.Listener
	key      string // as in socketsVariable: the address it was opened for
	http     *http.Server
	serving  sync.WaitGroup
}

// Limits of the server. Prometheus asks a few times a minute.
const (
	metricsConnections = 64
	metricsTimeout     = 30 * time.Second
	metricsCloseLimit  = 2 * time.Second
)

// serveMetrics answers on l, which becomes its own, until Close.
func serveMetrics(l net.Listener, key string, metrics http.Handler, log *slog.Logger) *metricsServer {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	s := &metricsServer{
		listener: l,
		key:      key,
		http: &http.Server{
			Handler:           mux,
			ReadHeaderTimeout: 10 * time.Second,
			ReadTimeout:       10 * time.Second,
			WriteTimeout:      metricsTimeout,
			IdleTimeout:       2 * time.Minute, // longer than the usual interval between two questions
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

// retire takes no more clients, whom a successor has from now on, and answers each
// that is there once more. Close is for later: it hangs up on those who have
// connected and not yet asked.
func (s *metricsServer) retire() error {
	s.http.SetKeepAlivesEnabled(false)
	err := s.listener.Close()
	s.serving.Wait()
	return err
}

// Close takes no more questions, and waits a moment for those under way.
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
