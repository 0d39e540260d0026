package console

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"

	"spamgate/internal/accounts"
	"spamgate/internal/operation"
	"spamgate/internal/web"
)

// maxForm bounds the body of a request, except that of a message that is tried. maxLogin bounds that
// of a login, which strangers send, and thousands at once by HTTP/2: a password of 4 KiB fits in.
const (
	maxForm  = 256 << 10
	maxLogin = 16 << 10
)

// bodyLimit returns the size of the largest body of a request.
func bodyLimit(r *http.Request) int64 {
	switch {
	case r.URL.Path == "/login":
		return maxLogin
	case r.Method == http.MethodPost && r.URL.Path == "/try":
		return maxTried + maxForm
	}
	return maxForm
}

// contentSecurityPolicy lets a page load nothing but the console's own style sheet, script and
// pictures. Inline scripts and styles do not run.
const contentSecurityPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// guard returns the handler before the router: it checks what does not depend on the route.
func (c *Console) guard(next http.Handler) http.Handler {
	foreign := http.NewCrossOriginProtection()
	foreign.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(&exchange{console: c, w: w, r: r}).fail(failure{http.StatusForbidden, "The request comes from another site. Open the console and try again there."})
	}))
	next = foreign.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentSecurityPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !c.allowedHost(r.Host) {
			x := &exchange{console: c, w: w, r: r}
			x.fail(failure{http.StatusMisdirectedRequest, fmt.Sprintf("The console is not known as %.100q: [console] url says by which name and port it is.", r.Host)})
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, bodyLimit(r))
		next.ServeHTTP(w, r)
	})
}

// allowedHost reports whether the Host field names the console as [console] url does. A page
// of another site whose name leads to the console's address (DNS rebinding) has another Host.
func (c *Console) allowedHost(host string) bool {
	return withPort(host, c.secure()) == withPort(c.Settings().URL.Host, c.secure())
}

// withPort returns a host in lower case with its port.
func withPort(host string, secure bool) string {
	host = strings.ToLower(host)
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	port := "80"
	if secure {
		port = "443"
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}

// serve returns the handler of a route: it finds out who asks, and whether they may.
func (c *Console) serve(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{console: c, w: w, r: r}
		defer x.recover()
		if rt.may != anyone {
			switch in, err := x.authenticate(); {
			case err != nil:
				x.fail(err)
				return
			case !in:
				x.turnAway()
				return
			}
			defer web.Hold(r)()
			leave, ok := c.requests.enter(x.who.Name)
			if !ok {
				x.fail(failure{http.StatusTooManyRequests, "Too many requests at once. Try again when they are answered."})
				return
			}
			x.leave = sync.OnceFunc(leave)
			defer x.leave()
			if rt.may != entered && !x.who.MaySome(rt.may) {
				x.fail(errForbidden)
				return
			}
		}
		err := x.checkFields()
		if err == nil {
			err = rt.serve(x)
		}
		if err != nil {
			x.fail(err)
		}
	})
}

// checkFields returns why the fields of a request cannot be read, or nil. A malformed field would
// count as one that is missing, and a search without it finds more. Handlers parse what has another
// bound, and the bodies of the API. A form that is too large has no fields, as its handler says.
func (x *exchange) checkFields() error {
	if _, err := url.ParseQuery(x.r.URL.RawQuery); err != nil {
		return errFields(err)
	}
	if x.r.Method != http.MethodPost || isAPI(x.r) || bodyLimit(x.r) != maxForm {
		return nil
	}
	err := x.parseForm()
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil
	}
	return err
}

// parseForm parses the fields of the URL and of the body, unless that is one of several parts.
func (x *exchange) parseForm() error {
	err := x.r.ParseForm()
	var tooLarge *http.MaxBytesError
	if err == nil || errors.As(err, &tooLarge) {
		return err
	}
	return errFields(err)
}

// errFields says that the fields of a request cannot be read.
func errFields(err error) error {
	return invalid(fmt.Sprintf("The fields of the request are malformed: %v. Write %% as %%25, and ; as %%3B.", err))
}

// recover logs a panic of a handler and answers that something is wrong.
func (x *exchange) recover() {
	switch p := recover(); p {
	case nil:
	case http.ErrAbortHandler: // the answer is not complete, and the client has to see that
		panic(p)
	default:
		x.fail(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	}
}

// authenticate finds the account of a request: by its token in the API; else by what a proxy
// says, or if it names nobody by its session, which may be another's who used the browser before.
// A session is not enough for the API, nor a token for a page, so that a browser can be made
// to send nothing that the API takes. The error says that the accounts cannot be read.
func (x *exchange) authenticate() (in bool, err error) {
	if isAPI(x.r) {
		return x.byToken()
	}
	if named, in, err := x.bySSO(); named {
		return in, err
	}
	c, noCookie := x.r.Cookie(x.console.cookieName())
	if noCookie != nil {
		return false, nil
	}
	account, session, err := x.console.Accounts.Session(c.Value)
	if err != nil {
		return false, x.unlessUnknown(err)
	}
	x.who, x.session, x.cookie = account, session, c.Value
	return true, nil
}

// unlessUnknown returns nil for an error that says that there is no such account, session or token,
// and errAccounts for others.
func (x *exchange) unlessUnknown(err error) error {
	if errors.Is(err, accounts.ErrNoAccount) || errors.Is(err, accounts.ErrNoSession) || errors.Is(err, accounts.ErrNoToken) {
		return nil
	}
	return x.unreadable(err)
}

var errAccounts = failure{http.StatusServiceUnavailable, "Accounts cannot be read: the log of the gate says why."}

// unreadable logs why the accounts cannot be read, at most once in a second, since anybody can ask.
func (x *exchange) unreadable(err error) failure {
	if x.console.unreadable.due(x.console.Now()) {
		x.console.Logger.Error("console: the accounts cannot be read", "error", err)
	}
	return errAccounts
}

// byToken finds the account of "Authorization: Bearer TOKEN".
func (x *exchange) byToken() (in bool, err error) {
	scheme, token, _ := strings.Cut(x.r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return false, nil
	}
	account, err := x.console.Accounts.Token(strings.TrimSpace(token))
	if err != nil {
		return false, x.unlessUnknown(err)
	}
	x.who = account
	return true, nil
}

// namedByProxy returns the user that a proxy has named, which only one before a Unix socket can
// do; none, or several in a request that cannot be believed.
func (x *exchange) namedByProxy() []string {
	field := x.console.Settings().SSOHeader
	if field == "" || !x.console.Unix {
		return nil
	}
	names := x.r.Header.Values(field)
	if len(names) == 1 && names[0] == "" {
		return nil
	}
	return names
}

// bySSO finds the account of the user that a proxy has named. Named says that there is one, with an
// account or not.
func (x *exchange) bySSO() (named, in bool, err error) {
	names := x.namedByProxy()
	if len(names) != 1 {
		return len(names) > 0, false, nil
	}
	account, err := x.console.Accounts.User(names[0])
	if err != nil {
		return true, false, x.unlessUnknown(err)
	}
	x.who, x.sso = account, true
	return true, true, nil
}

// turnAway answers a request without a session or token. After a link from another site the
// browser sends no cookie that is SameSite=Strict; it sends it once the page asks again.
func (x *exchange) turnAway() {
	switch {
	case isAPI(x.r):
		x.w.Header().Set("WWW-Authenticate", `Bearer realm="spamgate"`)
		operation.WriteJSON(x.w, http.StatusUnauthorized, apiError{"a token is needed: Authorization: Bearer TOKEN"})
	case x.r.Method == http.MethodGet && x.r.Header.Get("Sec-Fetch-Site") == "cross-site":
		x.show("again", view{Title: "One moment"})
	case x.r.Method == http.MethodGet || x.r.Method == http.MethodHead:
		http.Redirect(x.w, x.r, "/login?to="+url.QueryEscape(x.r.URL.RequestURI()), http.StatusSeeOther)
	default:
		x.fail(failure{http.StatusUnauthorized, "Your session has ended. Log in and try again."})
	}
}

// clientAddress returns the address of the client, for limits and the log. Behind a proxy on
// this machine it is the last one in X-Forwarded-For, which the proxy has added.
func (x *exchange) clientAddress() string {
	host, _, err := net.SplitHostPort(x.r.RemoteAddr)
	if err != nil {
		host = x.r.RemoteAddr
	}
	if !x.behindProxy(host) {
		return host
	}
	all := strings.Split(strings.Join(x.r.Header.Values("X-Forwarded-For"), ","), ",")
	if a, err := netip.ParseAddr(strings.TrimSpace(all[len(all)-1])); err == nil {
		return a.Unmap().WithZone("").String()
	}
	if x.console.Unix {
		return "unix"
	}
	return host
}

// behindProxy reports whether the request came by a proxy on this machine: through the Unix
// socket; or from a loopback address without TLS, while browsers reach the console by https. In
// that case another user of this machine can make up an address, which only spreads his attempts
// to log in: those for a name and for all are limited, too.
func (x *exchange) behindProxy(host string) bool {
	if x.console.Unix {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback() && x.r.TLS == nil && x.console.secure()
}

// origin returns where an attempt to log in comes from.
func (x *exchange) origin() accounts.Origin {
	from := accounts.Origin{Address: x.clientAddress()}
	if c, err := x.r.Cookie(x.console.cookieName() + browserCookie); err == nil {
		from.Browser = c.Value
	}
	return from
}

// browserCookie ends the name of the cookie by which a login knows the browser.
const browserCookie = "-browser"

// cookieName returns the name of the session's cookie. With the prefix __Host- browsers take
// it from no other host, and by https only.
func (c *Console) cookieName() string {
	if c.secure() {
		return "__Host-spamgate"
	}
	return "spamgate"
}
