// Package console is the gate's web console: pages for people and a JSON API for programs,
// on a socket of its own.
//
// Nobody is trusted because of an address, loopback included: every page needs a session and
// every API request a token. [Console.Routes] lists all routes with what an account must be
// allowed to do. GET never changes anything. Text from mail, lists and log is hostile:
// html/template escapes it, and the Content-Security-Policy allows no inline script.
package console

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"spamgate/blocklist"
	"spamgate/internal/accounts"
	"spamgate/internal/admin"
	"spamgate/internal/check"
	"spamgate/internal/config"
	"spamgate/internal/decisions"
	"spamgate/internal/managed"
)

// Options are the parts of the gate that the console shows and changes.
type Options struct {
	Config func() *config.Config // the one in use

	// Settings returns what a reload may change.
	Settings func() Settings

	Set      func() *blocklist.Set // the lists that serve
	Gate     admin.Gate
	Fleet    admin.FleetGate // asked if [fleet] is configured
	Accounts *accounts.Store
	Logger   *slog.Logger

	// History is the history of decisions, and Recorder returns what writes it; nil if the
	// gate keeps none. A reload can turn the history off: see keepsHistory.
	History  *decisions.Reader
	Recorder func() *decisions.Recorder

	Editor *managed.Editor
	Check  *check.Engine

	// Show returns an address as the history shows it.
	Show func(string) string

	// Unix says that the console has a Unix socket: only then a proxy is trusted to name
	// the user (sso_header).
	Unix bool

	Now func() time.Time // nil: time.Now
}

// Settings are keys of [console].
type Settings struct {
	URL       *url.URL // where browsers reach the console: its scheme and host count
	SSOHeader string   // the field with which a proxy names the user; "" for none
}

// Console serves pages and API.
type Console struct {
	Options
	handler http.Handler
	routes  []route
	pages   pages
	works   works
	tries   chan struct{} // places for messages that are tried

	requests  places
	streams   places // live views
	downloads places
	health    cached[admin.Health]
	fleet     cached[admin.Fleet]

	limitedLogins oncePerSecond // lines of the log about them
	unreadable    oncePerSecond // likewise, about accounts that cannot be read

	ending context.Context // ends with Close
	end    context.CancelFunc
}

// New returns the console. The error is a fault in the templates.
func New(o Options) (*Console, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Console{
		Options: o, tries: make(chan struct{}, tryPlaces),
		requests: places{each: requestsEach, all: requestsAll},
		streams:  places{each: streamsEach, all: streamsAll}, downloads: places{each: 1, all: 2},
	}
	c.health.what, c.health.fresh, c.health.log = "health", healthFresh, o.Logger
	c.health.ask = func(ctx context.Context) admin.Health { return c.Gate.Health(ctx) }
	c.fleet.what, c.fleet.fresh, c.fleet.log = "fleet", fleetFresh, o.Logger
	c.fleet.ask = func(ctx context.Context) admin.Fleet { return c.Fleet.Fleet(ctx) }
	c.ending, c.end = context.WithCancel(context.Background())
	var err error
	if c.pages, err = parsePages(); err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	c.routes = allRoutes()
	c.handler = c.guard(c.mux())
	return c, nil
}

// ServeHTTP answers a request.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.handler.ServeHTTP(w, r) }

// recorder returns what writes the history; nil if the gate keeps none.
func (c *Console) recorder() *decisions.Recorder {
	if c.Recorder == nil {
		return nil
	}
	return c.Recorder()
}

// keepsHistory reports whether this gate keeps a history of decisions.
func (c *Console) keepsHistory() bool { return c.History != nil && c.Config().Decisions.Keep != 0 }

// inFleet reports whether the gate belongs to a fleet.
func (c *Console) inFleet() bool { return c.Config().Fleet.On() }

// Close ends answers that would go on by themselves, such as live views, so that the server
// can shut down.
func (c *Console) Close() { c.end() }

// secure reports whether browsers reach the console by https.
func (c *Console) secure() bool { return c.Settings().URL.Scheme == "https" }

// route is one way into the console.
type route struct {
	method, path string

	// may is what the account must be allowed to do, if only for its own recipients. What
	// the handler shows and changes needs accounts.Account.May or MayFor.
	may accounts.Action

	serve func(*exchange) error
}

// Not actions: anyone needs no session, and entered any account.
const (
	anyone accounts.Action = -1 - iota
	entered
)

// Route is a route as documents and tests list it.
type Route struct {
	Method string
	Path   string // as http.ServeMux has it
	May    string // "anyone", "any account", or an accounts.Action
}

// Routes returns all routes.
func (c *Console) Routes() []Route {
	all := make([]Route, len(c.routes))
	for i, r := range c.routes {
		all[i] = Route{r.method, r.path, r.may.String()}
		switch r.may {
		case anyone:
			all[i].May = "anyone"
		case entered:
			all[i].May = "any account"
		}
	}
	return all
}

// allRoutes returns the routes of pages and API.
func allRoutes() []route {
	return slices.Concat(entranceRoutes, nowRoutes, mailRoutes, listRoutes, entryRoutes, tryRoutes, changesRoutes,
		fleetRoutes, settingsRoutes, accountRoutes, apiRoutes())
}

// mux returns the router. A path without a route is 404 with a session, and the login page
// or 401 without one, so that nobody learns from outside which routes there are.
func (c *Console) mux() *http.ServeMux {
	paths := map[string][]route{}
	for _, r := range c.routes {
		paths[r.path] = append(paths[r.path], r)
	}
	mux := http.NewServeMux()
	for path, routes := range paths {
		mux.Handle(path, c.byMethod(path, routes))
	}
	if paths["/"] == nil {
		mux.Handle("/", c.serve(route{path: "/", may: entered, serve: func(*exchange) error { return errNotFound }}))
	}
	return mux
}

// byMethod returns the handler of a path. The patterns of the router have no methods: it would
// not take "/mail/events" for all methods beside "GET /mail/{id}".
func (c *Console) byMethod(path string, routes []route) http.Handler {
	handlers, methods := map[string]http.Handler{}, []string{}
	for _, r := range routes {
		handlers[r.method], methods = c.serve(r), append(methods, r.method)
	}
	other := c.serve(route{path: path, may: entered, serve: func(x *exchange) error {
		x.w.Header().Set("Allow", strings.Join(methods, ", "))
		return failure{http.StatusMethodNotAllowed, "This path does not take " + x.r.Method + "."}
	}})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		cmp.Or(handlers[method], other).ServeHTTP(w, r)
	})
}

// isAPI reports whether a request is one to the API, whose answers are JSON.
func isAPI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }
