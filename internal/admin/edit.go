package admin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"spamgate/internal/managed"
)

// This file does the operations that edit managed lists.

// by returns who makes an edit.
func (c *call) by(from Caller) managed.By {
	switch {
	case c.r == nil:
		return managed.Self()
	case c.peer.Known:
		return managed.User(c.peer.UID, from.SudoUser)
	}
	return managed.User(-1, from.SudoUser)
}

// logEdit logs a request to edit a list.
func (c *call) logEdit(command, why string) {
	c.log.Info("edit asked for", "command", command, "list", c.list, "by", c.peer, "why", why)
}

func (c *call) add(q AddRequest) (managed.Result, error) {
	c.logEdit("add", q.Why)
	return c.options.Editor.Add(c.ctx, c.by(q.Caller), c.list, q.Entries, q.Options)
}

func (c *call) remove(q RemoveRequest) (managed.Result, error) {
	c.logEdit("remove", q.Why)
	return c.options.Editor.Remove(c.ctx, c.by(q.Caller), c.list, q.Entries, q.Options)
}

func (c *call) undo(q UndoRequest) (managed.Result, error) {
	c.logEdit("undo", q.Why)
	return c.options.Editor.Undo(c.ctx, c.by(q.Caller), q.Change, q.Options)
}

func (c *call) rollback(q RollbackRequest) (managed.Result, error) {
	c.logEdit("rollback", q.Why)
	return c.options.Editor.Rollback(c.ctx, c.by(q.Caller), c.list, q.Version, q.Options)
}

func (c *call) versions(None) ([]managed.Version, error) { return c.options.Editor.Versions(c.list) }

// content responds with the text of a managed list.
func (c *call) content(None) (None, error) {
	content, err := c.options.Editor.Open(c.list)
	if err != nil {
		return None{}, err
	}
	defer content.Close()
	size, unsized := content.Seek(0, io.SeekEnd)
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return None{}, err
	}
	if unsized == nil { // else a response that breaks off would look whole
		c.w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	}
	c.begun = true
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	c.w.Header().Set("Cache-Control", "no-store")
	_, _ = io.Copy(patientWriter{c.w, http.NewResponseController(c.w)}, content) // the caller notices that something is missing
	return None{}, nil
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

// ReplaceRequest asks the gate to replace the text of a managed list by the request's body.
type ReplaceRequest struct {
	managed.Replacement
	Options managed.Options
	Caller
}

func (q *ReplaceRequest) encode() (url.Values, io.Reader) {
	return url.Values{
		"command": {q.Command}, "what": {q.What}, "base": {q.Base},
		"why": {q.Options.Why}, "dry_run": {strconv.FormatBool(q.Options.DryRun)}, "sudo_user": {q.SudoUser},
	}, q.Content
}

func (q *ReplaceRequest) decode(c *call) error {
	v := c.r.URL.Query()
	dryRun, err := strconv.ParseBool(v.Get("dry_run"))
	if v.Get("command") == "" || v.Get("dry_run") != "" && err != nil {
		return errors.New("command must not be empty, and dry_run is true or false")
	}
	q.Replacement = managed.Replacement{
		Command: v.Get("command"), What: v.Get("what"), Base: v.Get("base"),
		Content: patientReader{c.r.Body, http.NewResponseController(c.w)},
	}
	q.Options, q.SudoUser = managed.Options{DryRun: dryRun, Why: v.Get("why")}, v.Get("sudo_user")
	return nil
}

func (c *call) replace(q ReplaceRequest) (managed.Result, error) {
	c.logEdit(q.Command, q.Options.Why)
	return c.options.Editor.Replace(c.ctx, c.by(q.Caller), c.list, q.Replacement, q.Options)
}

// ChangesRequest asks for changes that the gate's audit log records. Want has no effect.
type ChangesRequest struct{ managed.ChangesQuery }

func (q *ChangesRequest) encode() (url.Values, io.Reader) {
	v := url.Values{"list": {q.List}, "entry": {q.Entry}, "by": {q.By}, "before": {q.Before}}
	if !q.Since.IsZero() {
		v.Set("since", q.Since.Format(time.RFC3339Nano))
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return v, nil
}

func (q *ChangesRequest) decode(c *call) (err error) {
	v := c.r.URL.Query()
	q.ChangesQuery = managed.ChangesQuery{List: v.Get("list"), Entry: v.Get("entry"), By: v.Get("by"), Before: v.Get("before")}
	if since := v.Get("since"); since != "" {
		if q.Since, err = time.Parse(time.RFC3339Nano, since); err != nil {
			return fmt.Errorf("since: %w", err)
		}
	}
	if limit := v.Get("limit"); limit != "" {
		if q.Limit, err = strconv.Atoi(limit); err != nil || q.Limit < 1 || q.Limit > maxChanges {
			return fmt.Errorf("limit must be from 1 to %d", maxChanges)
		}
	}
	return nil
}

// maxChanges is the most changes of one response.
const maxChanges = 10_000

func (c *call) changes(q ChangesRequest) (managed.ChangesPage, error) {
	return c.options.Editor.Changes(c.ctx, q.ChangesQuery)
}
