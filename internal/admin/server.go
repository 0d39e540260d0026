package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Options say what a Server is made of.
type Options struct {
	Socket  Socket
	Gate    Gate
	Metrics http.Handler // nil: there are none
	Logger  *slog.Logger // nil: no log

	// TakeOver replaces the socket of another gate that answers there. Without
	// it that is an error, ErrInUse.
	TakeOver bool
}

// Limits of a request. Nobody who asks in good faith comes near them.
const (
	maxBody       = 64 << 10
	maxHeader     = 16 << 10
	headerTimeout = 10 * time.Second
	readTimeout   = 30 * time.Second
	idleTimeout   = time.Minute

	// writeTimeout is how long a caller may leave an answer, or the next piece
	// of a long one, unread. It does not bound how long the work takes.
	writeTimeout = 30 * time.Second

	// closeTimeout is how long Close waits for what is under way.
	closeTimeout = 5 * time.Second
)

// Server answers on the socket.
type Server struct {
	options Options
	log     *slog.Logger
	http    *http.Server
	ctx     context.Context // of all requests; ends with Close
	cancel  context.CancelFunc

	mu      sync.Mutex
	socket  *socket
	closed  bool
	serving sync.WaitGroup
}

// Listen opens the socket and answers on it until Close.
func Listen(o Options) (*Server, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{options: o, log: o.Logger}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return s.ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, peerKey{}, peerOf(c))
		},
		ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	if !o.TakeOver {
		if err := checkFree(o.Socket.Path); err != nil {
			s.cancel()
			return nil, err
		}
	}
	if err := s.Ensure(); err != nil {
		s.cancel()
		return nil, err
	}
	return s, nil
}

// checkFree makes sure that no other gate answers on the socket.
func checkFree(path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	c, err := dialUnix(ctx, path)
	if err != nil {
		return nil // what else is wrong shows when the socket is made
	}
	defer c.Close()
	who := ""
	if p := peerOf(c); p.Known {
		who = fmt.Sprintf(" (process %d)", p.PID)
	}
	return fmt.Errorf("admin socket %s: %w%s: stop it, or give this one another [admin] socket", path, ErrInUse, who)
}

// Ensure makes the socket where its path leads elsewhere or nowhere: because
// somebody has removed it, or a gate that was to take over has not.
func (s *Server) Ensure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.socket != nil && s.socket.inPlace() {
		return nil
	}
	socket, err := s.options.Socket.open()
	if err != nil {
		return err
	}
	if s.socket != nil {
		_ = s.socket.Close() // nobody can reach it any more
	}
	s.socket = socket
	s.serving.Go(func() {
		err := s.http.Serve(socket)
		if !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			s.log.Error("the admin socket answers no more", "socket", socket.path, "error", err)
		}
	})
	return nil
}

// Path is where the socket is.
func (s *Server) Path() string { return s.options.Socket.Path }

// Close removes the socket, unless it is another gate's by now, and waits a
// moment for requests that are under way.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	err := s.socket.Close()
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if shutErr := s.http.Shutdown(ctx); errors.Is(shutErr, context.DeadlineExceeded) {
		s.cancel()
		err = errors.Join(err, s.http.Close())
	}
	s.cancel()
	s.serving.Wait()
	return err
}

// peerKey is where a request's context has its Peer.
type peerKey struct{}

func peerFrom(r *http.Request) Peer {
	p, _ := r.Context().Value(peerKey{}).(Peer)
	return p
}

// wireError is an error as it is answered.
type wireError struct {
	Error string `json:"error"`
	Code  string `json:"code,omitempty"`
}

// refuse answers with an error. What was given up because the gate ends is answered
// with that.
func (s *Server) refuse(w http.ResponseWriter, err error) {
	if s.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w any more: it is ending", ErrNotRunning)
	}
	status, code := statusOf(err)
	answer(w, status, wireError{err.Error(), code})
}

func statusOf(err error) (int, string) {
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.status, c.code
		}
	}
	return http.StatusInternalServerError, ""
}

// answer writes a whole answer. A caller that has gone away hears nothing.
func answer(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written as JSON"}`)
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
