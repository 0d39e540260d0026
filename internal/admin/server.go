package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"spamgate/internal/accounts"
	"spamgate/internal/managed"
	"spamgate/internal/operation"
	"spamgate/internal/unixsocket"
)

// Options configure a Server.
type Options struct {
	Socket  unixsocket.Socket
	Gate    Gate            // nil: the gate is starting, and each request is refused with ErrStarting
	Editor  *managed.Editor // of the managed lists
	History History         // of decisions
	Fleet   FleetGate       // nil: there are no requests about it
	Metrics http.Handler    // nil: none
	Logger  *slog.Logger    // nil: no log

	Accounts *accounts.Store // of the console; nil: there are no requests about them

	// TakeOver replaces the socket of another gate that answers there. Otherwise
	// that is an error, unixsocket.ErrInUse.
	TakeOver bool
}

// Limits of a request, far above real ones.
const (
	maxBody       = 64 << 10
	maxEntries    = 16 << 20 // of one with entries
	maxAccounts   = 1 << 20  // of one about an account, which may have a thousand domains
	maxHeader     = 16 << 10
	headerTimeout = 10 * time.Second
	readTimeout   = 30 * time.Second
	idleTimeout   = time.Minute

	// writeTimeout is how long a caller may leave a response, or a part of a long
	// one, unread. It does not bound the time that a request takes.
	writeTimeout = 30 * time.Second

	// closeTimeout is how long Close waits for requests.
	closeTimeout = 5 * time.Second
)

// Server serves the admin socket.
type Server struct {
	options Options
	log     *slog.Logger
	http    *http.Server
	ctx     context.Context // of all requests; ends with Close
	cancel  context.CancelFunc

	mu      sync.Mutex
	socket  *unixsocket.Listener
	closed  bool
	serving sync.WaitGroup
}

// Listen opens the socket and serves it until Close.
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
			return context.WithValue(ctx, peerKey{}, Peer(unixsocket.PeerOf(c)))
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

// checkFree checks that no other gate answers on the socket.
func checkFree(path string) error {
	if err := unixsocket.CheckFree(path); err != nil {
		return fmt.Errorf("admin socket %s: %w: stop it, or give this one another [admin] socket", path, err)
	}
	return nil
}

// Ensure makes the socket again if its path leads elsewhere or nowhere: somebody has
// removed it, or a gate that began to take over has ended.
func (s *Server) Ensure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.socket != nil && s.socket.InPlace() {
		return nil
	}
	socket, err := s.options.Socket.Listen()
	if err != nil {
		return fmt.Errorf("admin socket %s: %w", s.options.Socket.Path, err)
	}
	if s.socket != nil {
		_ = s.socket.Close() // nobody can reach it any more
	}
	s.socket = socket
	s.serving.Go(func() {
		err := s.http.Serve(socket)
		if !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			s.log.Error("admin socket has stopped", "socket", socket.Path(), "error", err)
		}
	})
	return nil
}

// Close removes the socket, unless it belongs to another gate by now, and waits up to 5
// seconds for requests.
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

// peerKey is the key of the Peer in a request's context.
type peerKey struct{}

func peerFrom(r *http.Request) Peer {
	p, _ := r.Context().Value(peerKey{}).(Peer)
	return p
}

// wireError is an error in a response.
type wireError struct {
	Error string `json:"error"`
	Code  string `json:"code,omitempty"`
}

// refuse responds with an error. If the request was cancelled because the gate is
// ending, the response says so.
func (s *Server) refuse(w http.ResponseWriter, err error) {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		answer(w, http.StatusRequestEntityTooLarge, wireError{fmt.Sprintf("the request is larger than %d bytes", large.Limit), "too_large"})
		return
	}
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

// answer writes a whole response.
func answer(w http.ResponseWriter, status int, value any) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	operation.WriteJSON(w, status, value)
}
