package fetch

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"spamgate/smtpfilter/clientname/dnstest"
)

// Linux has all of 127.0.0.0/8 on loopback. Two of its addresses stand for others.
const (
	publicAddr  = "127.0.0.2"
	privateAddr = "127.0.0.3"
)

func zoneInTests(host string) zone {
	switch host {
	case publicAddr:
		return public
	case privateAddr:
		return private
	}
	return zoneOf(host)
}

// visited is a server that counts its connections.
type visited struct {
	*httptest.Server
	connections atomic.Int32
}

// listen serves at an address.
func listen(t *testing.T, addr string, h http.HandlerFunc) *visited {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	v := &visited{Server: httptest.NewUnstartedServer(h)}
	v.Listener.Close()
	v.Listener = l
	v.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			v.connections.Add(1)
		}
	}
	v.Start()
	t.Cleanup(v.Close)
	return v
}

func portOf(t *testing.T, s *visited) string {
	t.Helper()
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// newRedirectFixture has a source at an address that redirects to what the function returns.
func newRedirectFixture(t *testing.T, addr string, target func() string) *fixture {
	x := newPlainFixture(t, send(listText))
	x.fetcher.zoneOf = zoneInTests
	x.source.URL = listen(t, addr+":0", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target(), http.StatusFound)
	}).URL + "/list.txt?token=secret"
	return x
}

// wantRefused wants a redirect to be refused without a connection.
func (x *fixture) wantRefused(t *testing.T, hidden *visited) {
	t.Helper()
	before := hidden.connections.Load()
	var refused *RedirectError
	if status := x.wantFault(t, "which is allowed only if url itself leads to such an address", nil); !errors.As(status.Err, &refused) {
		t.Errorf("error: %v", status.Err)
	}
	if n := hidden.connections.Load(); n != before {
		t.Errorf("%d connections", n-before)
	}
}

// TestRedirectToLocal has a server of the internet that redirects to what only the gate can
// reach.
func TestRedirectToLocal(t *testing.T) {
	hidden := listen(t, "127.0.0.1:0", send("secret.example\n"))
	target := ""
	x := newRedirectFixture(t, publicAddr, func() string { return target })
	names := dnstest.New(t, "127.0.0.1:0")
	names.AddAddr("inside.example", "127.0.0.1", 0)
	names.AddAddr("mapped.example", "::ffff:127.0.0.1", 0)
	names.AddAddr("intranet.example", "10.1.2.3", 0)
	x.fetcher.dialer.Resolver = &net.Resolver{PreferGo: true, Dial: names.Dial}
	for _, host := range []string{
		"127.0.0.1", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0", "[::]", "[::1]", "[64:ff9b::7f00:1]", "[::127.0.0.1]", "localhost",
		"10.0.0.1", "172.31.255.255", "192.168.0.1", "100.64.0.1", "[fd00::1]", "[::ffff:10.0.0.1]", "[2002:a00:1::1]",
		"169.254.169.254", "[fe80::1%25lo]", "224.0.0.1", "[ff02::1]", "255.255.255.255",
		"inside.example", "mapped.example", "intranet.example", privateAddr,
	} {
		for _, scheme := range []string{"http", "https"} {
			target = fmt.Sprintf("%s://%s:%s/", scheme, host, portOf(t, hidden))
			x.wantRefused(t, hidden)
		}
	}
	target = "http://" + publicAddr + ":" + portOf(t, listen(t, publicAddr+":0", redirectTo(hidden.URL)))
	x.wantRefused(t, hidden) // at the second redirect
}

// TestRedirectFromLocal has a list of a server nearby.
func TestRedirectFromLocal(t *testing.T) {
	inside, private, outside := listen(t, "127.0.0.1:0", send(listText)), listen(t, privateAddr+":0", send(listText)), listen(t, publicAddr+":0", send(listText))
	target := ""
	for _, c := range []struct {
		from string
		to   *visited
		good bool
	}{
		{"127.0.0.1", inside, true}, {"127.0.0.1", private, true}, {"127.0.0.1", outside, true},
		{privateAddr, inside, false}, {privateAddr, private, true}, {privateAddr, outside, true},
		{publicAddr, inside, false}, {publicAddr, private, false}, {publicAddr, outside, true},
	} {
		x := newRedirectFixture(t, c.from, func() string { return target })
		if target = c.to.URL; !c.good {
			x.wantRefused(t, c.to)
			continue
		}
		if _, err := x.fetcher.Fetch(t.Context(), x.source); err != nil {
			t.Errorf("from %s to %s: %v", c.from, c.to.URL, err)
		}
	}
}

// TestRebinding has a name whose address changes between the first request and the redirect.
func TestRebinding(t *testing.T) {
	hidden := listen(t, "127.0.0.1:0", send("secret.example\n"))
	names := dnstest.New(t, "127.0.0.1:0")
	x := newRedirectFixture(t, publicAddr, func() string {
		names.Clear()
		names.AddAddr("lists.example", "127.0.0.1", 0)
		return "http://lists.example:" + portOf(t, hidden) + "/"
	})
	x.fetcher.dialer.Resolver = &net.Resolver{PreferGo: true, Dial: names.Dial}
	x.source.URL = strings.Replace(x.source.URL, publicAddr, "lists.example", 1)
	names.AddAddr("lists.example", publicAddr, 0)
	// wantFault fetches once: the second answer to the lookup is the address of the victim.
	x.wantRefused(t, hidden)
}

// TestTwoAddresses has a name with an address on either side: the other one is used.
func TestTwoAddresses(t *testing.T) {
	hidden := listen(t, "127.0.0.1:0", send("secret.example\n"))
	port := portOf(t, hidden)
	listen(t, publicAddr+":"+port, send(listText))
	names := dnstest.New(t, "127.0.0.1:0")
	names.AddAddr("both.example", "127.0.0.1", 0)
	names.AddAddr("both.example", publicAddr, 0)
	x := newRedirectFixture(t, publicAddr, func() string { return "http://both.example:" + port + "/" })
	x.fetcher.dialer.Resolver = &net.Resolver{PreferGo: true, Dial: names.Dial}
	x.fetch(t)
	x.wantCopy(t, listText)
	if n := hidden.connections.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
}

// TestSignatureRedirect has a signature whose server redirects.
func TestSignatureRedirect(t *testing.T) {
	public, _ := newKey(t)
	hidden := listen(t, "127.0.0.1:0", send("secret.example\n"))
	x := newRedirectFixture(t, publicAddr, func() string { return hidden.URL })
	x.source.PublicKey = public.String()
	x.source.SignatureURL = x.source.URL
	x.source.URL = x.server.URL + "/list.txt"
	x.wantRefused(t, hidden)
}

// TestRedirectThroughProxy has a proxy, which looks names up by itself.
func TestRedirectThroughProxy(t *testing.T) {
	names := dnstest.New(t, "127.0.0.1:0")
	names.AddAddr("intranet.example", "10.1.2.3", 0)
	names.AddAddr("mirror.example", "10.1.2.4", 0)
	names.AddAddr("lists.example", publicAddr, 0)
	for _, c := range []struct {
		from, to string
		good     bool
	}{
		{"lists.example", "lists.example", true},
		{"lists.example", "unknown.example", true}, // only the proxy knows
		{"unknown.example", "lists.example", true},
		{"unknown.example", "intranet.example", false},
		{"lists.example", "intranet.example", false},
		{"lists.example", "127.0.0.1", false},
		{"lists.example", "localhost", false},
		{"lists.example", "a.localhost.", false},
		{"lists.example", "127.1", false},
		{"lists.example", "0x7f000001", false},
		{"lists.example", "2130706433", false},
		{"lists.example", "0177.0.0.1", false},
		{"lists.example", "169.254.169.254", false},
		{"mirror.example", "intranet.example", true},
		{"10.1.2.4", "intranet.example", true},
		{"mirror.example", "127.0.0.1", false},
	} {
		t.Run(c.from+" to "+c.to, func(t *testing.T) {
			var asked []string
			proxy := listen(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
				if asked = append(asked, r.URL.Host); len(asked) == 1 {
					http.Redirect(w, r, "http://"+c.to+"/two", http.StatusFound)
					return
				}
				send(listText)(w, r)
			})
			location, err := url.Parse(proxy.URL)
			if err != nil {
				t.Fatal(err)
			}
			x := newPlainFixture(t, nil)
			x.fetcher.zoneOf = zoneInTests
			x.fetcher.proxy = http.ProxyURL(location)
			x.fetcher.dialer.Resolver = &net.Resolver{PreferGo: true, Dial: names.Dial}
			x.source.URL = "http://" + c.from + "/list.txt"
			if c.good {
				x.fetch(t)
				return
			}
			if x.wantFault(t, "the server redirects to "+c.to, nil); len(asked) != 1 {
				t.Errorf("asked: %v", asked)
			}
		})
	}
}

// TestProxyBypassed has a redirect to a host that is asked without the proxy.
func TestProxyBypassed(t *testing.T) {
	hidden := listen(t, "127.0.0.1:0", send("secret.example\n"))
	proxy := listen(t, "127.0.0.1:0", redirectTo(hidden.URL))
	x := newPlainFixture(t, nil)
	x.fetcher.proxy = func(r *http.Request) (*url.URL, error) {
		if r.URL.Hostname() == "127.0.0.1" {
			return nil, nil
		}
		return url.Parse(proxy.URL)
	}
	x.fetcher.dialer.Resolver = &net.Resolver{PreferGo: true, Dial: dnstest.New(t, "127.0.0.1:0").Dial}
	x.source.URL = "http://lists.example/list.txt"
	x.wantRefused(t, hidden)
}

// TestProxySecret has a proxy whose URL is invalid and contains a password.
func TestProxySecret(t *testing.T) {
	x := newFixture(t, send(listText))
	x.fetcher.proxy = func(*http.Request) (*url.URL, error) {
		return nil, errors.New(`invalid proxy address "http://user:secret@proxy.example:x/"`)
	}
	x.wantFault(t, "the proxy is not a valid URL", nil)
}

// TestNoReferer has a token in the list's URL, which the next server must not learn.
func TestNoReferer(t *testing.T) {
	for name, start := range servers {
		x := start(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/three" {
				http.Redirect(w, r, map[string]string{"/list.txt": "/two?more=secret", "/two": "/three"}[r.URL.Path], http.StatusFound)
				return
			}
			send(listText)(w, r)
		})
		x.source.URL = strings.Replace(x.server.URL, "://", "://user:secret@", 1) + "/list.txt?token=secret"
		x.fetch(t)
		all := x.handler.requests()
		if len(all) != 3 {
			t.Errorf("%s: %d requests", name, len(all))
		}
		for _, r := range all {
			if r.Get("Referer") != "" {
				t.Errorf("%s: %v", name, r)
			}
		}
	}
}

// TestZones has the borders of each block.
func TestZones(t *testing.T) {
	for _, c := range []struct {
		addrs string
		want  zone
	}{
		{"127.0.0.0 127.255.255.255 0.0.0.0 0.255.255.255 :: ::1 ::ffff:127.0.0.1 ::ffff:0.0.0.0", loopback},
		{"10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255 100.64.0.0 100.127.255.255 198.18.0.1", private},
		{"fc00:: fdff:ffff::1 fec0::1 64:ff9b:1::1 ::ffff:10.0.0.1 64:ff9b::a00:1 2002:c0a8:1::", private},
		{"169.254.0.0 169.254.255.255 224.0.0.0 239.255.255.255 240.0.0.0 255.255.255.255 192.0.0.1", link},
		{"fe80::1 febf::1 fe80::1%eth0 ff00::1 ffff::1 ::ffff:169.254.169.254", link},
		{"1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0", public},
		{"172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255 192.169.0.0 223.255.255.255 2001:db8::1 2600::1 fe00::1 64:ff9b::808:808 2002:808:808::1", public},
	} {
		for a := range strings.FieldsSeq(c.addrs) {
			if got := zoneOfAddr(netip.MustParseAddr(a)); got != c.want {
				t.Errorf("%s: %v, want %v", a, got, c.want)
			}
			if got := zoneOf(a); got != c.want {
				t.Errorf("%s as a host: %v, want %v", a, got, c.want)
			}
		}
	}
	for host, want := range map[string]zone{
		"localhost": loopback, "LOCALHOST.": loopback, "x.localhost": loopback, "127.1": loopback, "1": loopback, "0x7F000001": loopback,
		"lists.example": public, "localhost.example": public, "1.example": public, "x0.example": public, "": public,
	} {
		if got := zoneOf(host); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}
