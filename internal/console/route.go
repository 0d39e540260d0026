package console

import (
	"net/http"
	"slices"
	"strings"

	"spamgate/internal/accounts"
)

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
	paths := map[string]map[string]http.Handler{}
	for _, r := range c.routes {
		if paths[r.path] == nil {
			paths[r.path] = map[string]http.Handler{}
		}
		paths[r.path][r.method] = c.serve(r)
	}
	mux := http.NewServeMux()
	for path, methods := range paths {
		mux.Handle(path, c.byMethod(path, methods))
	}
	if paths["/"] == nil {
		mux.Handle("/", c.serve(route{path: "/", may: entered, serve: func(*exchange) error { return errNotFound }}))
	}
	return mux
}

// byMethod returns the handler of a path. The patterns of the router have no methods: it would
// not take "/mail/events" for all methods beside "GET /mail/{id}".
func (c *Console) byMethod(path string, methods map[string]http.Handler) http.Handler {
	other := c.serve(route{path: path, may: entered, serve: wrongMethod})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		h, ok := methods[method]
		if !ok {
			h = other
		}
		h.ServeHTTP(w, r)
	})
}

// wrongMethod answers a request with a method that the path has no route for.
func wrongMethod(x *exchange) error {
	var methods []string
	for _, r := range x.console.routes {
		if r.path == x.r.Pattern {
			methods = append(methods, r.method)
		}
	}
	x.w.Header().Set("Allow", strings.Join(methods, ", "))
	return failure{http.StatusMethodNotAllowed, "This path does not take " + x.r.Method + "."}
}

// isAPI reports whether a request is one to the API, whose answers are JSON.
func isAPI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }
