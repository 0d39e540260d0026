package console

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"spamgate/internal/accounts"
	"spamgate/internal/config"
)

const password = "correct horse battery"

// testConsole returns a console at http://gate.example without users: see addUser.
func testConsole(t testing.TB, change ...func(*Options)) *Console {
	t.Helper()
	store := accounts.Open(t.TempDir())
	t.Cleanup(store.Close)
	o := Options{
		Config:   func() *config.Config { return &config.Config{Hostname: "mx.example"} },
		Settings: settings("http://gate.example", ""),
		Accounts: store,
		Logger:   slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// settings returns settings that do not change.
func settings(place, ssoHeader string) func() Settings {
	u, err := url.Parse(place)
	if err != nil {
		panic(err) // a test has written it
	}
	return func() Settings { return Settings{URL: u, SSOHeader: ssoHeader} }
}

// ask sends a request, and returns the response with its body.
func ask(c *Console, r *http.Request) (*http.Response, string) {
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	body, _ := io.ReadAll(w.Result().Body) // it is in memory
	return w.Result(), string(body)
}

func get(path string) *http.Request {
	return httptest.NewRequest(http.MethodGet, "http://gate.example"+path, nil)
}

// post returns a request as a form of the console sends it.
func post(path string, fields ...string) *http.Request {
	values := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		values.Add(fields[i], fields[i+1])
	}
	r := httptest.NewRequest(http.MethodPost, "http://gate.example"+path, strings.NewReader(values.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return r
}

// addUser adds a user who is called like a role, or "bound", an editor of the domain
// b.example. Passwords take time to hash, so that a test adds whom it needs.
func addUser(t testing.TB, c *Console, name string) {
	t.Helper()
	if err := addAccount(c.Accounts, name); err != nil {
		t.Fatal(err)
	}
}

func addAccount(store *accounts.Store, name string) error {
	role, err := accounts.ParseRole(name)
	var domains []string
	if err != nil {
		role, domains = accounts.Editor, []string{"b.example"}
	}
	if err := store.AddUser(name, password, role, domains); !errors.Is(err, accounts.ErrExists) {
		return err
	}
	return nil
}

// login adds a user, logs in and returns the cookie.
func login(t testing.TB, c *Console, name string) *http.Cookie {
	t.Helper()
	addUser(t, c, name)
	response, body := ask(c, post("/login", "name", name, "password", password))
	if response.StatusCode != http.StatusSeeOther {
		t.Fatalf("login of %s: %s\n%s", name, response.Status, body)
	}
	return cookieOf(t, response, "spamgate")
}

// cookieOf returns the cookie of a name that a response sets.
func cookieOf(t testing.TB, response *http.Response, name string) *http.Cookie {
	t.Helper()
	for _, c := range response.Cookies() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no cookie %s: %v", name, response.Cookies())
	return nil
}

// with returns the request with a cookie.
func with(r *http.Request, cookie *http.Cookie) *http.Request {
	r.AddCookie(cookie)
	return r
}

// addToken adds a token of an admin, and returns its secret.
func addToken(t testing.TB, c *Console) string {
	t.Helper()
	token, err := c.Accounts.AddToken("program", accounts.Admin, nil)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// bearing returns the request with a token.
func bearing(r *http.Request, token string) *http.Request {
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// TestEveryRouteNeedsSomebody walks the router: without a session or a token there is only the
// login page.
func TestEveryRouteNeedsSomebody(t *testing.T) {
	c := testConsole(t)
	if len(c.Routes()) < 5 {
		t.Fatalf("only %d routes", len(c.Routes()))
	}
	for _, r := range append(c.Routes(), Route{Method: "GET", Path: "/nothing"}, Route{Method: "PUT", Path: "/login"}, Route{Method: "GET", Path: "/api/v1/nothing"}) {
		path := strings.NewReplacer("{$}", "", "{", "", "}", "").Replace(r.Path)
		for _, method := range []string{r.Method, "GET", "POST", "DELETE", "PUT"} {
			request := post(path)
			request.Method = method
			response, body := ask(c, request)
			switch {
			case path == "/login" && (method == "GET" || method == "POST"), strings.HasPrefix(path, "/static/") && method == "GET":
			case isAPI(request):
				if response.StatusCode != http.StatusUnauthorized || response.Header.Get("WWW-Authenticate") == "" {
					t.Errorf("%s %s: %s without a token: %s", method, path, response.Status, body)
				}
			case method == "GET":
				if to := response.Header.Get("Location"); response.StatusCode != http.StatusSeeOther || !strings.HasPrefix(to, "/login?to=") {
					t.Errorf("GET %s: %s to %q without a session", path, response.Status, to)
				}
			case response.StatusCode != http.StatusUnauthorized:
				t.Errorf("%s %s: %s without a session: %s", method, path, response.Status, body)
			}
		}
	}
}

// TestGuard checks what is checked before the router.
func TestGuard(t *testing.T) {
	c := testConsole(t)
	for _, tt := range []struct {
		what   string
		change func(*http.Request)
		status int
	}{
		{"a form of the console", func(*http.Request) {}, http.StatusUnauthorized},
		{"no browser", func(r *http.Request) { r.Header.Del("Sec-Fetch-Site") }, http.StatusUnauthorized},
		{"another host", func(r *http.Request) { r.Host = "evil.example" }, http.StatusMisdirectedRequest},
		{"no host", func(r *http.Request) { r.Host = "" }, http.StatusMisdirectedRequest},
		{"an address", func(r *http.Request) { r.Host = "127.0.0.1" }, http.StatusMisdirectedRequest},
		{"another port", func(r *http.Request) { r.Host = "gate.example:8080" }, http.StatusMisdirectedRequest},
		{"the port that http has", func(r *http.Request) { r.Host = "GATE.example:80" }, http.StatusUnauthorized},
		{"another site", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		{"another site of the same domain", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, http.StatusForbidden},
		{"an old browser at another site", func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set("Origin", "http://evil.example")
		}, http.StatusForbidden},
	} {
		r := post("/logout")
		tt.change(r)
		response, body := ask(c, r)
		if response.StatusCode != tt.status {
			t.Errorf("%s: %s, want %d\n%s", tt.what, response.Status, tt.status, body)
		}
		for field, want := range map[string]string{"Content-Security-Policy": "script-src 'self'", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"} {
			if !strings.Contains(response.Header.Get(field), want) {
				t.Errorf("%s: %s is %q", tt.what, field, response.Header.Get(field))
			}
		}
	}
}

// TestMalformedFields wants no answer to a request of which a part would be missing.
func TestMalformedFields(t *testing.T) {
	p := newParts(t, "")
	admin, token := login(t, p.Console, "admin"), addToken(t, p.Console)
	form := func(path, body string) *http.Request {
		r := post(path)
		r.Body = io.NopCloser(strings.NewReader(body))
		return with(r, admin)
	}
	for _, r := range []*http.Request{
		bearing(get("/api/v1/decisions?sender=%zz"), token),
		bearing(get("/api/v1/decisions?sender=a;b=c"), token),
		with(get("/mail?sender=%zz"), admin),
		with(get("/mail.csv?sender=a;b=c"), admin),
		with(get("/static/style.css?%zz"), admin),
		form("/entry/new?sender=%zz", ""),
		form("/entry/new", "sender=%zz"),
		form("/entry/new", "sender=x@a.example;whom=all"),
		form("/try", "address=%zz"),
		form("/login", "name=%zz"),
	} {
		response, body := ask(p.Console, r)
		if response.StatusCode != http.StatusBadRequest || !strings.Contains(body, "malformed") {
			t.Errorf("%s %s: %s %s", r.Method, r.URL, response.Status, body)
		}
	}
	if response, _ := ask(p.Console, get("/mail?sender=%zz")); response.StatusCode != http.StatusSeeOther {
		t.Errorf("without a session: %s", response.Status)
	}
}

// TestLogin checks the way in and out.
func TestLogin(t *testing.T) {
	c := testConsole(t)
	addUser(t, c, "viewer")
	for _, secure := range []bool{false, true} {
		if secure {
			c.Settings = settings("https://gate.example", "")
		}
		response, body := ask(c, post("/login", "name", "viewer", "password", "wrong", "to", "/mail"))
		if response.StatusCode != http.StatusUnauthorized || len(response.Cookies()) > 0 || !strings.Contains(body, "wrong") {
			t.Errorf("a wrong password: %s, %v", response.Status, response.Cookies())
		}
		response, _ = ask(c, post("/login", "name", "Viewer", "password", password, "to", "/login?to=/x"))
		for _, cookie := range response.Cookies() {
			if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Secure != secure || cookie.Path != "/" || cookie.Domain != "" {
				t.Errorf("the cookie is %v", cookie)
			}
			if strings.HasPrefix(cookie.Name, "__Host-") != secure {
				t.Errorf("secure %v: the cookie's name is %s", secure, cookie.Name)
			}
		}
		cookie := cookieOf(t, response, c.cookieName())
		if response, _ := ask(c, with(get("/login?to=%2Fmail%3Fid%3D1"), cookie)); response.Header.Get("Location") != "/mail?id=1" {
			t.Errorf("with a session, the login page leads to %q", response.Header.Get("Location"))
		}
		if response, _ := ask(c, with(post("/logout"), cookie)); response.Header.Get("Location") != "/login" {
			t.Errorf("logout: %s", response.Status)
		}
		if response, _ := ask(c, with(get("/"), cookie)); !strings.HasPrefix(response.Header.Get("Location"), "/login?") {
			t.Errorf("the cookie still opens the console: %s", response.Status)
		}
	}
}

// TestLinkFromElsewhere wants a page that asks again if the browser sends no cookie, since the
// link stood in a mail, say.
func TestLinkFromElsewhere(t *testing.T) {
	c := testConsole(t)
	r := get("/mail")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if response, body := ask(c, r); response.StatusCode != http.StatusOK || !strings.Contains(body, `http-equiv="refresh"`) {
		t.Errorf("%s\n%s", response.Status, body)
	}
}

// TestLocalPath wants no way out of the console.
func TestLocalPath(t *testing.T) {
	for to, want := range map[string]string{
		"/mail?id=1": "/mail?id=1", "/": "/", "": "/", "mail": "/", "//evil.example": "/", `/\evil.example`: "/", "https://evil.example/": "/",
		"javascript:alert(1)": "/", "/a\r\nSet-Cookie: x": "/", "/\t/evil.example": "/", "/%2f/evil.example": "/%2f/evil.example", "/@evil.example": "/@evil.example",
	} {
		if got := localPath(to); got != want {
			t.Errorf("localPath(%q) = %q, want %q", to, got, want)
		}
	}
}

// TestSSO lets in whom a proxy names, and only a proxy before a Unix socket.
func TestSSO(t *testing.T) {
	for _, tt := range []struct {
		what  string
		unix  bool
		field string
		names []string
		in    bool
	}{
		{"named", true, "X-Remote-User", []string{"viewer"}, true},
		{"over TCP", false, "X-Remote-User", []string{"viewer"}, false},
		{"not configured", true, "", []string{"viewer"}, false},
		{"twice", true, "X-Remote-User", []string{"viewer", "admin"}, false},
		{"unknown", true, "X-Remote-User", []string{"nobody"}, false},
		{"empty", true, "X-Remote-User", []string{""}, false},
		{"not at all", true, "X-Remote-User", nil, false},
	} {
		c := testConsole(t, func(o *Options) { o.Unix, o.Settings = tt.unix, settings("http://gate.example", tt.field) })
		addUser(t, c, "viewer")
		r := get("/login")
		for _, name := range tt.names {
			r.Header.Add("X-Remote-User", name)
		}
		response, body := ask(c, r)
		if (response.StatusCode == http.StatusSeeOther) != tt.in {
			t.Errorf("%s: %s", tt.what, response.Status)
		}
		if told := strings.Contains(body, "there is no account of your name"); told != (tt.what == "unknown") {
			t.Errorf("%s: the page says that there is no account: %t", tt.what, told)
		}
	}
}

// TestStatic wants the files with a type, and nothing else.
func TestStatic(t *testing.T) {
	c := testConsole(t)
	for path, want := range map[string]string{"style.css": "text/css; charset=utf-8", "console.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml", "..%2fpages%2flogin.html": "", "none": ""} {
		response, _ := ask(c, get("/static/"+path))
		if got := response.Header.Get("Content-Type"); want != "" && got != want || want == "" && response.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s, %q", path, response.Status, got)
		}
	}
}

// TestHome sends the help desk to the mail, and others to what they may see first.
func TestHome(t *testing.T) {
	c := testConsole(t)
	for role, want := range map[string]string{"viewer": "/now", "helpdesk": "/mail", "editor": "/now", "admin": "/now", "bound": "/mail"} {
		if response, _ := ask(c, with(get("/"), login(t, c, role))); response.Header.Get("Location") != want {
			t.Errorf("%s: %s %q, want %s", role, response.Status, response.Header.Get("Location"), want)
		}
	}
}
