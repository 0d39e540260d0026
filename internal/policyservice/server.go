package policyservice

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"spamgate/internal/door"
)

// Protocol is the name of this door in the log and in [verdict.Message].
const Protocol = "policy_service"

// Times that the server waits for Postfix, which closes an idle connection after 300 s
// (smtpd_policy_service_max_idle), and any connection after 1000 s.
const (
	idleTimeout     = 1000 * time.Second
	questionTimeout = 10 * time.Second // from its first byte to its last
	answerTimeout   = 10 * time.Second
)

// Server answers the questions of Postfix. Its methods are safe for concurrent use.
type Server struct {
	door     *door.Door
	server   *door.Server
	log      *slog.Logger
	messages messages
	warned   sync.Map // states in which questions have no recipient
}

// New returns a Server. It sets the configuration's Protocol and Once. The policy must be
// valid, see [smtpfilter.Policy.Validate].
func New(cfg door.Config, settings door.Settings) *Server {
	cfg.Protocol, cfg.Once = Protocol, true
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		door: door.New(cfg, settings),
		log:  cfg.Log.With("door", Protocol, "listener", cfg.Name),
	}
	s.server = door.NewServer(s.door, s.serve)
	return s
}

// Apply changes the settings for new messages and connections.
func (s *Server) Apply(settings door.Settings) { s.door.Apply(settings) }

// Serve answers the questions on a listener's connections until Shutdown, and returns nil
// then. Several listeners may be served at a time.
func (s *Server) Serve(l net.Listener) error { return s.server.Serve(l) }

// Shutdown closes the listeners and all connections, after the answers to questions that have
// begun. When ctx ends, it does not wait for those, and returns the context's error.
func (s *Server) Shutdown(ctx context.Context) error { return s.server.Shutdown(ctx) }

// serve answers the questions of a connection until one of them has no answer, or the
// connection ends.
func (s *Server) serve(c *door.Conn) {
	var q request
	var answer []byte
	for c.Wait(idleTimeout) == nil {
		if err := read(c, &q); err != nil {
			s.failed(c, "policy question not understood, connection closed", err)
			return
		}
		action, ok := s.answer(&q)
		if !ok {
			return // the log has the reason
		}
		answer = append(answer[:0], "action="...)
		answer = append(answer, action...)
		answer = append(answer, "\n\n"...)
		err := write(c, answer)
		if q.about != nil {
			q.about.note()
		}
		if err != nil {
			s.failed(c, "policy answer not sent", err)
			if q.about != nil {
				s.messages.forget(q.key, q.about) // the tag may have been in it
			}
			return
		}
	}
}

// read reads a question that has begun.
func read(c *door.Conn, q *request) error {
	if begun, err := c.Reader.Peek(c.Reader.Buffered()); err != nil || !bytes.HasSuffix(begun, []byte("\n\n")) {
		if err := c.SetReadDeadline(time.Now().Add(questionTimeout)); err != nil {
			return err
		}
	}
	return q.read(c.Reader)
}

// write writes an answer.
func write(c *door.Conn, answer []byte) error {
	if err := c.SetWriteDeadline(time.Now().Add(answerTimeout)); err != nil {
		return err
	}
	_, err := c.Write(answer)
	return err
}

// failed logs why a connection ends inside a question, unless Shutdown has cut it off.
func (s *Server) failed(c *door.Conn, text string, err error) {
	if s.server.Context().Err() == nil {
		s.log.Warn(text, "peer", c.RemoteAddr().String(), "error", err)
	}
}
