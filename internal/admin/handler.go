package admin

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"spamgate/internal/text"
)

// route is one path and its method.
type route struct {
	method, pattern string
	handle          http.HandlerFunc
}

func (s *Server) routes() []route {
	routes := []route{
		{http.MethodGet, "/v1/status", s.status},
		{http.MethodGet, "/v1/health", s.health},
		{http.MethodGet, "/v1/generation", s.generation},
		{http.MethodPost, "/v1/rescan", post(s, s.rescan)},
		{http.MethodPost, "/v1/lists/{name}/accept", post(s, s.accept)},
		{http.MethodPost, "/v1/lists/{name}/pin", post(s, s.pin)},
		{http.MethodPost, "/v1/lists/{name}/unpin", post(s, s.unpin)},
		{http.MethodGet, "/v1/lists/{name}/unused", s.unused},
		{http.MethodPost, pathAdd, post(s, s.add)},
		{http.MethodPost, pathRemove, post(s, s.remove)},
		{http.MethodGet, "/v1/lists/{name}/content", s.content},
		{http.MethodPost, pathReplace, s.replace},
		{http.MethodGet, "/v1/lists/{name}/versions", s.versions},
		{http.MethodPost, "/v1/lists/{name}/rollback", post(s, s.rollback)},
		{http.MethodPost, "/v1/undo", post(s, s.undo)},
		{http.MethodGet, "/v1/changes", s.changes},
		{http.MethodGet, pathDecisions, s.find},
		{http.MethodGet, pathDecisions + "/top", s.top},
		{http.MethodGet, pathDecisions + "/totals", s.totals},
		{http.MethodPost, "/v1/handover", post(s, s.handover)},
		{http.MethodPost, "/v1/audit", post(s, s.audit)},
	}
	if s.options.Accounts != nil {
		routes = append(routes, route{http.MethodPost, pathAccounts, post(s, s.changeAccounts)})
	}
	routes = append(routes, s.fleetRoutes()...)
	if m := s.options.Metrics; m != nil {
		routes = append(routes, route{http.MethodGet, "/metrics", func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
			m.ServeHTTP(w, r)
		}})
	}
	return routes
}

// handler returns the handler of all routes. It also reports unknown paths and
// wrong methods in JSON, unlike the mux.
func (s *Server) handler() http.Handler {
	if s.options.Gate == nil {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { s.refuse(w, ErrStarting) })
	}
	mux := http.NewServeMux()
	var all []string
	for _, route := range s.routes() {
		all = append(all, route.pattern)
		mux.HandleFunc(route.pattern, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != route.method {
				w.Header().Set("Allow", route.method)
				answer(w, http.StatusMethodNotAllowed, wireError{fmt.Sprintf("%s %s: use %s", r.Method, r.URL.Path, route.method), "bad_method"})
				return
			}
			if route.pattern != pathReplace { // which takes whole lists
				r.Body = http.MaxBytesReader(w, r.Body, bodyLimit(route.pattern))
			}
			route.handle(w, r)
		})
	}
	probes := Probes(s.options.Gate.Ready)
	for _, path := range ProbePaths {
		all = append(all, path)
		mux.Handle(path, probes)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusNotFound, wireError{fmt.Sprintf("there is no %s; there is %s", r.URL.Path, strings.Join(all, ", ")), "no_path"})
	})
	return mux
}

func (s *Server) status(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, s.options.Gate.Status())
}

func (s *Server) generation(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, Generation{s.options.Gate.Generation()})
}

// post returns a handler that decodes the body of a request, calls do and responds with
// the result.
func post[Request, Result any](s *Server, do func(*http.Request, Request) (Result, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var request Request
		if !s.read(w, r, &request) {
			return
		}
		result, err := do(r, request)
		if err != nil {
			s.refuse(w, err)
			return
		}
		answer(w, http.StatusOK, result)
	}
}

func (s *Server) rescan(r *http.Request, _ struct{}) (Rescanned, error) {
	s.log.Info("rescan asked for", "by", peerFrom(r))
	return s.options.Gate.Rescan(r.Context())
}

func (s *Server) accept(r *http.Request, request AcceptRequest) (Accepted, error) {
	name := r.PathValue("name")
	s.log.Info("accept asked for", "list", name, "by", peerFrom(r), "why", request.Why, "sha256", request.SHA256)
	result, err := s.options.Gate.Accept(r.Context(), name, request.SHA256)
	if err == nil && request.SHA256 == "" {
		s.auditAccept(r, name, request, result)
	}
	return result, err
}

// auditAccept writes to the audit log that held content was accepted. A request with
// a sum is part of another change, whose author writes its own record.
func (s *Server) auditAccept(r *http.Request, list string, request AcceptRequest, result Accepted) {
	err := s.options.Gate.Audit(peerFrom(r), AuditRecord{
		SudoUser: request.SudoUser, Command: "accept", List: list, Why: request.Why,
		What: fmt.Sprintf("accepted the update that was held, %d entries; %d before", result.Entries, result.Before),
	})
	if err != nil {
		s.log.Error("accepted, but not recorded in the audit log", "list", list, "error", err)
	}
}

func (s *Server) pin(r *http.Request, request PinRequest) (PinResult, error) {
	name := r.PathValue("name")
	s.log.Info("pin asked for", "list", name, "by", peerFrom(r), "why", request.Why, "sha256", request.SHA256)
	result, err := s.options.Gate.Pin(r.Context(), peerFrom(r), name, request)
	if err == nil {
		s.auditPin(r, AuditRecord{SudoUser: request.SudoUser, Command: "pin", List: name, Why: request.Why, What: result.Pinned.What()})
	}
	return result, err
}

func (s *Server) unpin(r *http.Request, request UnpinRequest) (PinResult, error) {
	name := r.PathValue("name")
	s.log.Info("unpin asked for", "list", name, "by", peerFrom(r), "why", request.Why)
	result, err := s.options.Gate.Unpin(r.Context(), name)
	if err == nil {
		s.auditPin(r, AuditRecord{SudoUser: request.SudoUser, Command: "unpin", List: name, Why: request.Why, What: Unpinned})
	}
	return result, err
}

// Unpinned is what the audit log has of a list that was unpinned.
const Unpinned = "unpinned"

// What returns what the audit log has of the pin.
func (p *Pinned) What() string {
	return fmt.Sprintf("pinned at content %s, %d entries", p.SHA256[:min(12, len(p.SHA256))], p.Entries)
}

func (s *Server) auditPin(r *http.Request, record AuditRecord) {
	if err := s.options.Gate.Audit(peerFrom(r), record); err != nil {
		s.log.Error("done, but not recorded in the audit log", "command", record.Command, "list", record.List, "error", err)
	}
}

func (s *Server) handover(r *http.Request, request HandoverRequest) (HandedOver, error) {
	if !(request.TimeoutSeconds >= 0 && request.TimeoutSeconds <= MaxHandover.Seconds()) {
		return HandedOver{}, fmt.Errorf("%w: timeout_seconds must be from 0 to %v", ErrRequest, MaxHandover.Seconds())
	}
	s.log.Info("handover asked for", "by", peerFrom(r))
	return s.options.Gate.Handover(r.Context(), time.Duration(request.TimeoutSeconds*float64(time.Second)))
}

func (s *Server) audit(r *http.Request, record AuditRecord) (struct{}, error) {
	if record.Command == "" || record.List == "" || record.What == "" {
		return struct{}{}, fmt.Errorf("%w: command, list and what must not be empty", ErrRequest)
	}
	return struct{}{}, s.options.Gate.Audit(peerFrom(r), record)
}

// read decodes the body of a request; an empty one means {}. If the body is invalid
// it responds, and returns false.
func (s *Server) read(w http.ResponseWriter, r *http.Request, into any) bool {
	err := text.DecodeJSON(r.Body, into)
	var large *http.MaxBytesError
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return true
	case errors.As(err, &large):
		answer(w, http.StatusRequestEntityTooLarge, wireError{fmt.Sprintf("the request is larger than %d bytes", large.Limit), "too_large"})
	default:
		s.refuse(w, fmt.Errorf("%w: %w", ErrRequest, err))
	}
	return false
}

// Day is the format of a day, in UTC.
const Day = time.DateOnly

// unused responds with a line for each entry. An error before the first line is a
// status, a later one is in the last line.
func (s *Server) unused(w http.ResponseWriter, r *http.Request) {
	since, err := time.Parse(Day, r.URL.Query().Get("since"))
	if err != nil {
		s.refuse(w, fmt.Errorf("%w: since=%q is not a day, such as 2026-12-31", ErrRequest, r.URL.Query().Get("since")))
		return
	}
	here := r.URL.Query().Get("here") == "true"
	l := lineWriter{w: w, control: http.NewResponseController(w), out: bufio.NewWriterSize(w, 32<<10)}
	l.json = json.NewEncoder(l.out)
	l.json.SetEscapeHTML(false)
	end, err := s.options.Gate.Unused(r.Context(), r.PathValue("name"), since, here,
		func(h UnusedHeader) error {
			w.Header().Set("Content-Type", "application/jsonl")
			w.Header().Set("Cache-Control", "no-store")
			return l.line(h)
		},
		func(e UnusedEntry) error { return l.line(e) })
	if err != nil && !l.begun {
		s.refuse(w, err)
		return
	}
	end.End = true
	if err != nil {
		end.Error = err.Error()
	}
	if l.line(end) == nil {
		_ = l.out.Flush() // the caller may be gone
	}
}

// lineWriter writes JSON lines, as long as the caller reads them.
type lineWriter struct {
	w       io.Writer
	control *http.ResponseController
	out     *bufio.Writer
	json    *json.Encoder
	begun   bool
	written int
}

func (l *lineWriter) line(value any) error {
	// Not for each line: lines are short, and there may be millions.
	if l.written%64 == 0 {
		_ = l.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	}
	l.begun = true
	l.written++
	return l.json.Encode(value)
}
