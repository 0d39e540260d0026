package admin

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"spamgate/internal/managed"
)

// This file serves the requests that edit managed lists.

// Paths of requests that may be larger than others.
const (
	pathAdd     = "/v1/lists/{name}/entries"
	pathRemove  = "/v1/lists/{name}/entries/remove"
	pathReplace = "/v1/lists/{name}/replace"
)

// maxEntries bounds a request with entries, in bytes.
const maxEntries = 16 << 20

// bodyLimit returns the size of the largest request.
func bodyLimit(pattern string) int64 {
	switch pattern {
	case pathAdd, pathRemove:
		return maxEntries
	case pathAccounts:
		return maxAccountsBody
	}
	return maxBody
}

// author returns who makes the edit of a request.
func author(r *http.Request, sudoUser string) managed.By {
	if peer := peerFrom(r); peer.Known {
		return managed.User(peer.UID, sudoUser)
	}
	return managed.User(-1, sudoUser)
}

// logEdit logs a request to edit a list.
func (s *Server) logEdit(r *http.Request, command, list, why string) {
	s.log.Info("edit asked for", "command", command, "list", list, "by", peerFrom(r), "why", why)
}

func (s *Server) add(r *http.Request, request AddRequest) (managed.Result, error) {
	s.logEdit(r, "add", r.PathValue("name"), request.Why)
	return s.options.Editor.Add(r.Context(), author(r, request.SudoUser), r.PathValue("name"), request.Entries, request.Options)
}

func (s *Server) remove(r *http.Request, request RemoveRequest) (managed.Result, error) {
	s.logEdit(r, "remove", r.PathValue("name"), request.Why)
	return s.options.Editor.Remove(r.Context(), author(r, request.SudoUser), r.PathValue("name"), request.Entries, request.Options)
}

func (s *Server) undo(r *http.Request, request UndoRequest) (managed.Result, error) {
	s.logEdit(r, "undo", "", request.Why)
	return s.options.Editor.Undo(r.Context(), author(r, request.SudoUser), request.Change, request.Options)
}

func (s *Server) rollback(r *http.Request, request RollbackRequest) (managed.Result, error) {
	s.logEdit(r, "rollback", r.PathValue("name"), request.Why)
	return s.options.Editor.Rollback(r.Context(), author(r, request.SudoUser), r.PathValue("name"), request.Version, request.Options)
}

// versions responds with the versions of a managed list.
func (s *Server) versions(w http.ResponseWriter, r *http.Request) {
	versions, err := s.options.Editor.Versions(r.PathValue("name"))
	if err != nil {
		s.refuse(w, err)
		return
	}
	answer(w, http.StatusOK, versions)
}

// content responds with the text of a managed list.
func (s *Server) content(w http.ResponseWriter, r *http.Request) {
	content, err := s.options.Editor.Open(r.PathValue("name"))
	if err != nil {
		s.refuse(w, err)
		return
	}
	defer content.Close()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	control := http.NewResponseController(w)
	if size, err := content.Seek(0, io.SeekEnd); err == nil { // else a response that breaks off would look whole
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		s.refuse(w, err)
		return
	}
	_, _ = io.Copy(patientWriter{w, control}, content) // the caller notices that something is missing
}

// patientWriter gives the reader of each part some time.
type patientWriter struct {
	w       io.Writer
	control *http.ResponseController
}

func (p patientWriter) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	return p.w.Write(b)
}

// patientReader gives the sender of each part some time.
type patientReader struct {
	r       io.Reader
	control *http.ResponseController
}

func (p patientReader) Read(b []byte) (int, error) {
	_ = p.control.SetReadDeadline(time.Now().Add(readTimeout))
	return p.r.Read(b)
}

// replace replaces the text of a managed list by the body of the request.
func (s *Server) replace(w http.ResponseWriter, r *http.Request) {
	list, q := r.PathValue("name"), r.URL.Query()
	dryRun, err := strconv.ParseBool(q.Get("dry_run"))
	if q.Get("command") == "" || q.Get("dry_run") != "" && err != nil {
		s.refuse(w, fmt.Errorf("%w: command must not be empty, and dry_run is true or false", ErrRequest))
		return
	}
	s.logEdit(r, q.Get("command"), list, q.Get("why"))
	result, err := s.options.Editor.Replace(r.Context(), author(r, q.Get("sudo_user")), list, managed.Replacement{
		Command: q.Get("command"), What: q.Get("what"), Base: q.Get("base"),
		Content: patientReader{r.Body, http.NewResponseController(w)},
	}, managed.Options{DryRun: dryRun, Why: q.Get("why")})
	if err != nil {
		s.refuse(w, err)
		return
	}
	answer(w, http.StatusOK, result)
}

// changes responds with changes of lists.
func (s *Server) changes(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	query := managed.ChangesQuery{List: q.Get("list"), Entry: q.Get("entry"), By: q.Get("by"), Before: q.Get("before")}
	var err error
	if since := q.Get("since"); since != "" {
		if query.Since, err = time.Parse(time.RFC3339Nano, since); err != nil {
			s.refuse(w, fmt.Errorf("%w: since: %w", ErrRequest, err))
			return
		}
	}
	if limit := q.Get("limit"); limit != "" {
		if query.Limit, err = strconv.Atoi(limit); err != nil || query.Limit < 1 || query.Limit > maxChanges {
			s.refuse(w, fmt.Errorf("%w: limit must be from 1 to %d", ErrRequest, maxChanges))
			return
		}
	}
	page, err := s.options.Editor.Changes(r.Context(), query)
	if err != nil {
		s.refuse(w, err)
		return
	}
	answer(w, http.StatusOK, page)
}

// maxChanges is the most changes of one response.
const maxChanges = 10_000

// sudoUser returns the user before sudo, as a command reports it.
func sudoUser() string { return os.Getenv("SUDO_USER") }
