package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"time"
)

// proxyLookup bounds the lookup of a name that a proxy is going to look up itself.
const proxyLookup = 5 * time.Second

// route is what is known of the way of one request. A server of the internet must not make
// the gate ask services that only this machine or its network can reach: the first
// connection shows where the configured host is, and redirects may not lead nearer. Every
// address is checked when it is dialled, after the lookup of its name, so that a name
// whose address changes does not help.
type route struct {
	mu         sync.Mutex
	proxied    bool // the current request goes through a proxy
	redirected bool
	origin     zone // of the configured host
}

type routeKey struct{}

// routeOf returns the route of a request's context.
func routeOf(ctx context.Context) *route {
	r, _ := ctx.Value(routeKey{}).(*route)
	return r
}

// RedirectError is a redirect to an address of this machine or its network, from a URL that
// is not there.
type RedirectError struct {
	Host string // address or name
	zone zone
}

func (e *RedirectError) Error() string {
	return fmt.Sprintf("the server redirects to %s (%s), which is allowed only if url itself leads to such an address: if it is intended, set url to the address after the redirect", e.Host, e.zone)
}

// permit checks the zone of a redirect's host.
func (r *route) permit(host string, to zone) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.redirected && !to.reachableFrom(r.origin) {
		return &RedirectError{host, to}
	}
	return nil
}

// direct reports whether the current request goes without a proxy.
func (r *route) direct() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.proxied
}

// dial connects to a server or a proxy.
func (f *Fetcher) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	dialer := f.dialer
	r := routeOf(ctx)
	if r == nil || !r.direct() {
		return dialer.DialContext(ctx, network, addr)
	}
	dialer.Control = func(_, addr string, _ syscall.RawConn) error {
		return r.permit(hostOf(addr), f.zoneOf(hostOf(addr)))
	}
	conn, err := dialer.DialContext(ctx, network, addr)
	if err == nil {
		r.connected(f.zoneOf(hostOf(conn.RemoteAddr().String())))
	}
	return conn, err
}

func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return host
}

// connected takes down where the configured host is.
func (r *route) connected(zone zone) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.redirected {
		r.origin = zone
	}
}

// proxyFor returns the proxy for a request. A proxy looks up the name of the server by
// itself, so that only the name and the addresses known here can be checked.
func (f *Fetcher) proxyFor(req *http.Request) (*url.URL, error) {
	proxy, err := f.proxy(req)
	if err != nil {
		return nil, errors.New("the proxy is not a valid URL: check HTTPS_PROXY and HTTP_PROXY") // err has its password
	}
	r := routeOf(req.Context())
	if r == nil {
		return proxy, nil
	}
	r.mu.Lock()
	r.proxied = proxy != nil
	check := r.proxied && r.redirected
	r.mu.Unlock()
	if check {
		host := req.URL.Hostname()
		return proxy, r.permit(host, f.zoneOfName(req.Context(), host))
	}
	return proxy, nil
}

// redirect takes down that a request is redirected, for the first time from the configured
// host.
func (f *Fetcher) redirect(ctx context.Context, r *route, configured *url.URL) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.redirected && r.proxied {
		r.origin = f.zoneOfName(ctx, configured.Hostname())
	}
	r.redirected = true
}

// zoneOfName returns the nearest zone of a host's addresses; public if there are none, as
// on a machine that reaches the internet through a proxy only.
func (f *Fetcher) zoneOfName(ctx context.Context, host string) zone {
	nearest := f.zoneOf(host)
	if nearest != public {
		return nearest
	}
	ctx, cancel := context.WithTimeout(ctx, proxyLookup)
	defer cancel()
	resolver := f.dialer.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	addrs, _ := resolver.LookupHost(ctx, host)
	for _, a := range addrs {
		nearest = max(nearest, f.zoneOf(a))
	}
	return nearest
}
