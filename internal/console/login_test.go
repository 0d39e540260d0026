package console

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"spamgate/internal/accounts"
)

// TestLockedOut has somebody at the user's own address guess passwords without end. The user gets
// in with the browser that has logged in before.
func TestLockedOut(t *testing.T) {
	c := testConsole(t)
	addUser(t, c, "admin")
	first, _ := ask(c, post("/login", "name", "admin", "password", password))
	browser := cookieOf(t, first, "spamgate-browser")
	if browser.MaxAge <= 0 || !browser.HttpOnly {
		t.Errorf("the cookie of the browser: %v", browser)
	}
	limited := 0
	for range 50 {
		if response, _ := ask(c, post("/login", "name", "admin", "password", "a wrong password")); response.StatusCode == http.StatusTooManyRequests {
			limited++
		}
	}
	if response, _ := ask(c, post("/login", "name", "admin", "password", password)); limited != 40 || response.StatusCode != http.StatusTooManyRequests {
		t.Errorf("%d of 50 guesses were refused, and then a browser without the cookie got %s", limited, response.Status)
	}
	response, body := ask(c, with(post("/login", "name", "admin", "password", password), browser))
	if response.StatusCode != http.StatusSeeOther {
		t.Fatalf("with the cookie: %s\n%s", response.Status, body)
	}
	if fresh := cookieOf(t, response, "spamgate-browser"); fresh.Value == browser.Value {
		t.Error("the cookie of the browser is the old one")
	}
}

// TestLoginEndsFormer wants a login to end the session that the browser had: its cookie is gone.
func TestLoginEndsFormer(t *testing.T) {
	c := testConsole(t)
	former := login(t, c, "viewer")
	addUser(t, c, "editor")
	if response, _ := ask(c, with(post("/login", "name", "editor", "password", password), former)); response.StatusCode != http.StatusSeeOther {
		t.Fatal(response.Status)
	}
	if response, _ := ask(c, with(get("/account"), former)); response.StatusCode != http.StatusSeeOther {
		t.Errorf("the former session: %s", response.Status)
	}
}

// TestClientAddress says whose address X-Forwarded-For is: that of the proxy's client, only if a
// proxy of this machine must have sent the request.
func TestClientAddress(t *testing.T) {
	for _, tt := range []struct {
		what, url, remote string
		unix, tls         bool
		forwarded         []string
		want              string
	}{
		{"a client", "https://gate.example", "192.0.2.1:5", false, true, nil, "192.0.2.1"},
		{"a client that makes one up", "https://gate.example", "192.0.2.1:5", false, true, []string{"198.51.100.1"}, "192.0.2.1"},
		{"a client of a gate without TLS", "https://gate.example", "192.0.2.1:5", false, false, []string{"198.51.100.1"}, "192.0.2.1"},
		{"a proxy over TCP", "https://gate.example", "127.0.0.1:5", false, false, []string{"198.51.100.1"}, "198.51.100.1"},
		{"a proxy over TCP and IPv6", "https://gate.example", "[::1]:5", false, false, []string{"10.0.0.1, 198.51.100.1"}, "198.51.100.1"},
		{"a proxy that does not say it", "https://gate.example", "127.0.0.1:5", false, false, nil, "127.0.0.1"},
		{"a tunnel", "http://127.0.0.1:8025", "127.0.0.1:5", false, false, []string{"198.51.100.1"}, "127.0.0.1"},
		{"this machine by TLS", "https://gate.example", "127.0.0.1:5", false, true, []string{"198.51.100.1"}, "127.0.0.1"},
		{"a proxy at the socket", "https://gate.example", "@", true, false, []string{"10.0.0.1", "2001:db8::1"}, "2001:db8::1"},
		{"nonsense at the socket", "https://gate.example", "@", true, false, []string{"10.0.0.1, x"}, "unix"},
	} {
		c := testConsole(t, func(o *Options) { o.Unix, o.Settings = tt.unix, settings(tt.url, "") })
		r := get("/login")
		r.RemoteAddr = tt.remote
		if tt.tls {
			r.TLS = &tls.ConnectionState{}
		}
		for _, a := range tt.forwarded {
			r.Header.Add("X-Forwarded-For", a)
		}
		if got := (&exchange{console: c, r: r}).clientAddress(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.what, got, tt.want)
		}
	}
}

// TestFailedLoginLog wants a line for each wrong password, few for those that a limit refuses, and
// none with what cannot be a name: it may be a password.
func TestFailedLoginLog(t *testing.T) {
	var log bytes.Buffer
	c := testConsole(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	for range 1000 {
		ask(c, post("/login", "name", "my secret pass client=203.0.113.7", "password", "a wrong password"))
	}
	if wrong := strings.Count(log.String(), accounts.ErrWrong.Error()); wrong != 5 {
		t.Errorf("%d lines about wrong passwords", wrong)
	}
	if lines := strings.Count(log.String(), "console login failed"); lines > 100 {
		t.Errorf("%d lines", lines)
	}
	if strings.Contains(log.String(), "secret") || !strings.Contains(log.String(), `msg="console login failed" client=192.0.2.1 user=? error=`) {
		t.Errorf("%.500s", log.String())
	}
	cookie := login(t, testConsole(t, func(o *Options) { o.Accounts, o.Logger = c.Accounts, c.Logger }), "viewer")
	log.Reset()
	if response, _ := ask(c, with(post("/account/password", "old", "a wrong password", "new", password, "again", password), cookie)); response.StatusCode != http.StatusUnprocessableEntity {
		t.Fatal(response.Status)
	}
	if !strings.Contains(log.String(), "console login failed") {
		t.Error("no line about a wrong old password")
	}
}

// TestUnreadableAccounts tells who asks, and the log, that the accounts cannot be read.
func TestUnreadableAccounts(t *testing.T) {
	var log bytes.Buffer
	dir := t.TempDir()
	now := time.Now()
	c := testConsole(t, func(o *Options) {
		o.Accounts = accounts.Open(dir)
		t.Cleanup(o.Accounts.Close)
		o.Unix, o.Settings = true, settings("http://gate.example", "X-Remote-User")
		o.Now = func() time.Time { return now }
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	cookie, token := login(t, c, "viewer"), addToken(t, c)
	named := get("/account")
	named.Header.Set("X-Remote-User", "viewer")
	if err := os.WriteFile(filepath.Join(dir, "accounts.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, r := range map[string]*http.Request{
		"a token":           bearing(get("/api/v1/lists"), token),
		"a session":         with(get("/account"), cookie),
		"a user of a proxy": named,
		"the login page":    with(get("/login"), cookie),
		"a login":           post("/login", "name", "viewer", "password", password),
	} {
		log.Reset()
		now = now.Add(time.Second)
		response, body := ask(c, r)
		if response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "Accounts cannot be read: the log of the gate says why.") {
			t.Errorf("%s: %s\n%s", what, response.Status, body)
		}
		if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), `msg="console: the accounts cannot be read" error=`) {
			t.Errorf("%s: the log has %q", what, log.String())
		}
	}
	if response, _ := ask(c, get("/api/v1/lists")); response.StatusCode != http.StatusUnauthorized {
		t.Errorf("no token: %s", response.Status)
	}
}

// TestSSOBeforeSession wants the user whom the proxy names, not the one who has left a session
// in the browser.
func TestSSOBeforeSession(t *testing.T) {
	c := testConsole(t, func(o *Options) { o.Unix, o.Settings = true, settings("http://gate.example", "X-Remote-User") })
	left := login(t, c, "admin")
	addUser(t, c, "viewer")
	r := with(get("/account"), left)
	r.Header.Set("X-Remote-User", "viewer")
	if _, body := ask(c, r); !strings.Contains(body, "viewer") || strings.Contains(body, "admin") {
		t.Errorf("%s", body)
	}
	for _, names := range [][]string{{"nobody"}, {"viewer", "admin"}} {
		r := with(get("/account"), left)
		r.Header["X-Remote-User"] = names
		if response, _ := ask(c, r); response.StatusCode != http.StatusSeeOther {
			t.Errorf("named as %q: %s", names, response.Status)
		}
	}
	if response, _ := ask(c, with(post("/logout"), left)); response.StatusCode != http.StatusSeeOther {
		t.Error(response.Status)
	}
	if _, err := c.Accounts.Sessions(""); err != nil || c.Accounts.Alive(left.Value) {
		t.Errorf("the session goes on after a logout: %v", err)
	}
}

// TestLoginBody bounds what strangers send: the gate has it in memory, for thousands of requests.
func TestLoginBody(t *testing.T) {
	c := testConsole(t)
	for size, want := range map[int]int{4096: http.StatusUnauthorized, maxLogin: http.StatusRequestEntityTooLarge} {
		if response, _ := ask(c, post("/login", "name", "ann", "password", strings.Repeat("\u00e4", size/2))); response.StatusCode != want {
			t.Errorf("a password of %d bytes: %s", size, response.Status)
		}
	}
}
