package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"spamgate/internal/accounts"
	"spamgate/internal/admin"
	"spamgate/internal/decisions"
	"spamgate/internal/operation"
)

// exchange is one request with its answer.
type exchange struct {
	console *Console
	w       http.ResponseWriter
	r       *http.Request

	who     accounts.Account
	session accounts.Session
	cookie  string // of the session
	sso     bool   // a proxy has named the account

	status int // of a page; 0: 200

	// leave gives up the place among the requests at once; a live view does it early.
	leave func()
}

// redirect sends the browser to another page after a change.
func (x *exchange) redirect(to string) error {
	http.Redirect(x.w, x.r, to, http.StatusSeeOther)
	return nil
}

// form returns the value of a field of the body, without space around it.
func (x *exchange) form(name string) string { return strings.TrimSpace(x.r.PostFormValue(name)) }

// query returns the value of a field in the URL, without space around it.
func (x *exchange) query(name string) string { return strings.TrimSpace(x.r.URL.Query().Get(name)) }

// localPath returns a path of the console, and "/" for anything that could lead elsewhere.
func localPath(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(to, "/") ||
		strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") {
		return "/"
	}
	return to
}

// failure is an error that the client sees, with the status of HTTP.
type failure struct {
	status int
	text   string
}

func (f failure) Error() string { return f.text }

var (
	errNotFound  = failure{http.StatusNotFound, "There is nothing at this address."}
	errForbidden = failure{http.StatusForbidden, "Your role does not permit this."}
)

// invalid returns a failure of a request that its sender can correct.
func invalid(text string) error { return failure{http.StatusBadRequest, text} }

// asFailure returns what the client sees of an error. What went wrong inside the gate is in
// its log only, unless the gate's own errors are meant for users.
func (x *exchange) asFailure(err error) failure {
	var f failure
	var tooLarge *http.MaxBytesError
	edit, isEdit := editFailure(err)
	switch {
	case errors.As(err, &f):
		return f
	case isEdit:
		return edit
	case errors.As(err, &tooLarge):
		return failure{http.StatusRequestEntityTooLarge, "The request is too large."}
	case errors.Is(err, decisions.ErrCursor):
		return failure{http.StatusBadRequest, sentence(err)}
	case errors.Is(err, admin.ErrNoList):
		return failure{http.StatusNotFound, err.Error()}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		if x.r.Method != http.MethodGet {
			return failure{http.StatusServiceUnavailable, "The answer took too long. Look whether the change was made before you make it again."}
		}
		return failure{http.StatusServiceUnavailable, "The answer took too long. Narrow the search, or try again."}
	}
	x.console.Logger.Error("console request failed", "method", x.r.Method, "path", x.r.URL.Path, "user", x.who.Name, "error", err)
	return failure{http.StatusInternalServerError, "The gate could not answer: its log says why."}
}

// fail answers with an error: JSON in the API, else a page.
func (x *exchange) fail(err error) {
	f := x.asFailure(err)
	if isAPI(x.r) {
		operation.WriteJSON(x.w, f.status, apiError{f.text})
		return
	}
	x.status = f.status
	if err := x.render("error", view{Title: http.StatusText(f.status), Data: f.text}); err != nil {
		x.console.Logger.Error("console page failed", "error", err)
		http.Error(x.w, f.text, f.status)
	}
}

// apiError is an error in the API.
type apiError struct {
	Error string `json:"error"`
}
