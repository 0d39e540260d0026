package console

import (
	"net/http"
	"net/url"
	"strings"

	"spamgate/internal/accounts"
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

func escapeQuery(s string) string { return url.QueryEscape(s) }

// localPath returns a path of the console, and "/" for anything that could lead elsewhere.
func localPath(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(to, "/") ||
		strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") {
		return "/"
	}
	return to
}
