package milter

import (
	"context"
	"log/slog"
	"net"

	"spamgate/internal/door"
)

// Server serves mail servers. Its methods are safe for concurrent use.
type Server struct {
	door  *door.Door
	conns *door.Server
	name  string
	log   *slog.Logger
}

// New returns a Server. Serve opens it. The Protocol of the Config is always "milter".
func New(cfg door.Config, settings door.Settings) *Server {
	cfg.Protocol = "milter"
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{door: door.New(cfg, settings), name: cfg.Name, log: cfg.Log}
	s.conns = door.NewServer(s.door, s.handle)
	return s
}

// Apply changes the settings for new messages and connections.
func (s *Server) Apply(settings door.Settings) { s.door.Apply(settings) }

// Serve accepts mail servers until Shutdown, and returns nil then. Several listeners may be
// served at a time.
func (s *Server) Serve(l net.Listener) error { return s.conns.Serve(l) }

// Shutdown closes the listeners and the connections that are between two messages, and waits
// for the end of the others. When ctx ends it closes those too, and returns the context's
// error.
func (s *Server) Shutdown(ctx context.Context) error { return s.conns.Shutdown(ctx) }

// handle handles the connection of a mail server.
func (s *Server) handle(c *door.Conn) {
	session := session{server: s, conn: c}
	defer session.abandon()
	if err := session.run(); err != nil {
		s.logEnd(c, err)
	}
}

// logEnd logs why a connection ended.
func (s *Server) logEnd(c *door.Conn, err error) {
	level := slog.LevelDebug
	if _, ok := err.(violation); ok {
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{slog.String("door", "milter")}
	if s.name != "" {
		attrs = append(attrs, slog.String("listener", s.name))
	}
	attrs = append(attrs, slog.String("mail_server", c.RemoteAddr().String()), slog.String("error", err.Error()))
	s.log.LogAttrs(context.Background(), level, "connection of a mail server ended", attrs...)
}
