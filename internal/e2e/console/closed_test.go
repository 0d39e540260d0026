package console

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/console"
	"spamgate/internal/e2e/harness"
)

// A visitor sends requests to a console, by a proxy or not.
type visitor struct {
	t      testing.TB
	url    string // that the Host field is of
	client *http.Client
}

// newVisitor returns a visitor of a URL, who connects to an address: "127.0.0.1:4711" or
// "unix:PATH". It follows no redirect.
func newVisitor(t testing.TB, url, addr string, roots *x509.CertPool) *visitor {
	network := "tcp"
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", path
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
		TLSClientConfig: &tls.Config{RootCAs: roots},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &visitor{t, url, &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       harness.ReplyTimeout,
	}}
}

// ask sends a request with fields of the header: "Name", "value", ….
func (v *visitor) ask(method, path string, fields ...string) (*http.Response, string) {
	v.t.Helper()
	r, err := http.NewRequest(method, v.url+path, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	for i := 0; i+1 < len(fields); i += 2 {
		if r.Header.Set(fields[i], fields[i+1]); fields[i] == "Host" {
			r.Host = fields[i+1]
		}
	}
	response, err := v.client.Do(r)
	if err != nil {
		v.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		v.t.Fatalf("%s %s: %v", method, path, err)
	}
	return response, string(body)
}

// login logs a user in and returns the field Cookie.
func (v *visitor) login(name string) string {
	v.t.Helper()
	form := strings.NewReader("name=" + name + "&password=" + strings.ReplaceAll(harness.Password, " ", "+"))
	r, err := http.NewRequest(http.MethodPost, v.url+"/login", form)
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := v.client.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	response.Body.Close()
	if cookies := response.Cookies(); response.StatusCode == http.StatusSeeOther && len(cookies) == 2 { // and the browser's
		return cookies[0].Name + "=" + cookies[0].Value
	}
	v.t.Fatalf("login of %s: %s", name, response.Status)
	return ""
}

// trust are fields with which programs say that a request is from a trusted place or person.
// The console believes none of them.
var trust = []string{
	"X-Forwarded-For", "127.0.0.1", "X-Real-IP", "127.0.0.1", "Forwarded", "for=127.0.0.1", "X-Forwarded-Host", "localhost",
	"Remote-User", "admin", "X-Remote-User", "admin", "X-Forwarded-User", "admin", "Authorization", "Basic YWRtaW46YWRtaW4=",
	"X-Original-URL", "/login", "X-Rewrite-URL", "/login", "X-HTTP-Method-Override", "GET",
}

// wantClosed walks all routes without a session or a token: each is the login page, leads to
// it, or is refused.
func (v *visitor) wantClosed(fields ...string) {
	v.t.Helper()
	c, err := console.New(console.Options{})
	if err != nil {
		v.t.Fatal(err)
	}
	routes := append(c.Routes(), console.Route{Method: "GET", Path: "/nothing"}, console.Route{Method: "GET", Path: "/api/v1/nothing"})
	if len(routes) < 20 {
		v.t.Fatalf("only %d routes", len(routes))
	}
	for _, r := range routes {
		path := strings.NewReplacer("{$}", "", "{", "", "}", "").Replace(r.Path)
		response, body := v.ask(r.Method, path, fields...)
		switch {
		case r.May == "anyone":
		case strings.HasPrefix(path, "/api/"), r.Method != http.MethodGet:
			if response.StatusCode != http.StatusUnauthorized {
				v.t.Errorf("%s %s: %s\n%s", r.Method, path, response.Status, body)
			}
		default:
			if to := response.Header.Get("Location"); response.StatusCode != http.StatusSeeOther || !strings.HasPrefix(to, "/login?to=") {
				v.t.Errorf("%s %s: %s, to %q\n%s", r.Method, path, response.Status, to, body)
			}
		}
	}
}

// wantIn fails the test unless the visitor with these fields sees the page of the account.
func (v *visitor) wantIn(name string, fields ...string) {
	v.t.Helper()
	if response, body := v.ask("GET", "/account", fields...); response.StatusCode != http.StatusOK || !strings.Contains(body, name) {
		v.t.Errorf("%s: %s\n%s", name, response.Status, body)
	}
}

// TestClosed walks all routes at loopback, where nobody is trusted either.
func TestClosed(t *testing.T) {
	t.Parallel()
	s := startSite(t, harness.Setup{})
	s.AddUser("admin", "admin")
	v := newVisitor(t, s.url, strings.TrimPrefix(s.url, "http://"), nil)
	v.wantClosed()
	v.wantClosed(trust...)
	cookie := v.login("admin")
	v.wantIn("admin", "Cookie", cookie)
	for _, host := range []string{"attacker.example", "localhost", "127.0.0.1", "[::1]", strings.TrimPrefix(s.url, "http://") + "1"} {
		if response, _ := v.ask("GET", "/account", "Cookie", cookie, "Host", host); response.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("Host %s: %s", host, response.Status)
		}
	}
	for _, site := range []string{"cross-site", "same-site"} {
		if response, _ := v.ask("POST", "/logout", "Cookie", cookie, "Sec-Fetch-Site", site); response.StatusCode != http.StatusForbidden {
			t.Errorf("a POST from a page that is %s: %s", site, response.Status)
		}
	}
	v.wantIn("admin", "Cookie", cookie)
	// A session is none for the API, nor a token one for a page.
	if response, _ := v.ask("GET", "/api/v1/lists", "Cookie", cookie); response.StatusCode != http.StatusUnauthorized {
		t.Errorf("the API with a session: %s", response.Status)
	}
	if response, _ := v.ask("GET", "/account", "Authorization", "Bearer "+s.api.Token); response.StatusCode != http.StatusSeeOther {
		t.Errorf("a page with a token: %s", response.Status)
	}
	// What ends a session, or takes a token away, counts at once.
	s.Command(t, 0, "console", "user", "remove", "admin")
	s.Command(t, 0, "console", "token", "remove", "tests")
	v.wantClosed("Cookie", cookie)
	if status, err := s.api.Do("GET", "/api/v1/lists", nil, nil); err != nil || status != http.StatusUnauthorized {
		t.Errorf("a token that was removed: %d, %v", status, err)
	}
}

// TestManyLogins has somebody try passwords: after some the console does not check them, and
// mail passes meanwhile.
func TestManyLogins(t *testing.T) {
	t.Parallel()
	s := startSite(t, harness.Setup{})
	s.AddUser("admin", "admin")
	limited := 0
	for i := range 30 {
		response, err := http.PostForm(s.url+"/login", map[string][]string{"name": {"admin"}, "password": {fmt.Sprint("wrong password ", i)}})
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		switch response.StatusCode {
		case http.StatusTooManyRequests:
			limited++
		case http.StatusUnauthorized:
		default:
			t.Fatalf("a wrong password: %s", response.Status)
		}
	}
	if limited < 20 {
		t.Errorf("%d of 30 attempts were refused", limited)
	}
	s.passes(t, "friend@friend.example", ann)
}

// TestGetChangesNothing asks for every page and everything of the API, as an administrator:
// neither a list nor an account, a session or the audit log is another one afterwards.
func TestGetChangesNothing(t *testing.T) {
	t.Parallel()
	s := startSite(t, harness.Setup{})
	s.AddUser("admin", "admin")
	id := s.refuse(t, bob, ann, "blocked-file", "unsolicited mail")
	added := ask(t, s.api, 201, "POST", "/api/v1/lists/allowed/entries", entriesPattern, object{"entry": bob, "reason": "a customer"})
	v := newVisitor(t, s.url, strings.TrimPrefix(s.url, "http://"), nil)
	cookie := v.login("admin")
	v.wantIn("admin", "Cookie", cookie) // notes when the session was used

	before := s.state(t)
	c, err := console.New(console.Options{})
	if err != nil {
		t.Fatal(err)
	}
	path := strings.NewReplacer("{$}", "", "{file}", "style.css", "{name}", "allowed", "{id}", id, "{change}", added["change"].(string), "{entry}", bob)
	asked := 0
	for _, r := range c.Routes() {
		if r.Method != http.MethodGet || r.Path == "/mail/events" { // that answer does not end
			continue
		}
		for _, query := range []string{"", "?entry=" + bob + "&type=allow&sender=" + bob + "&until=1h&show=1&why=x&version=1&what=address&whom=all&q=" + bob} {
			response, body := v.ask(http.MethodGet, path.Replace(r.Path)+query, "Cookie", cookie, "Authorization", "Bearer "+s.api.Token)
			if response.StatusCode >= 500 {
				t.Errorf("GET %s: %s\n%s", path.Replace(r.Path)+query, response.Status, body)
			}
			asked++
		}
	}
	if after := s.state(t); after != before {
		t.Errorf("%d requests with GET have changed the state from\n%s\nto\n%s", asked, before, after)
	}
}

// state returns the contents of what people change.
func (s *site) state(t testing.TB) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range []string{"managed/*", "console/accounts.json", "console/sessions.json", "audit.log"} {
		files, err := filepath.Glob(filepath.Join(s.Dir, "state", filepath.FromSlash(pattern)))
		if err != nil || len(files) == 0 {
			t.Fatalf("no %s in the state directory: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&all, "%s:\n%s\n", file, text)
		}
	}
	return all.String()
}
