package world

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"spamgate/blocklist/store"
	"spamgate/internal/accounts"
	"spamgate/internal/config"
	"spamgate/internal/console"
	"spamgate/internal/managed"
	"spamgate/internal/setup"
)

// TestRoles plays requests to the console and its API: by accounts of all roles, whose roles change,
// from pages of other sites, through proxies and from those who only say that they are one.
//
// What is watched: each request is answered as a table of who may what says; what is refused changes
// no list; no page can be framed; a failed login is counted for the address that it came from.
func TestRoles(t *testing.T) {
	run(t, &part{few: 60, draw: drawRoles, play: playRoles})
}

// A request is one to the console.
type request struct {
	what string // of requestKinds
	who  int    // the account; -1: nobody
	role int    // another one, for "role"
	arg  int

	host, site, origin string // header fields
	proxy, forwarded   string // the address that the request comes from, and what the field says
	unix, https, sso   bool
	entry, until, list string
	recipient          string
}

func (m *request) String() string { return fmt.Sprintf("%+v", *m) }

var requestKinds = []string{"add", "add", "add", "remove", "undo", "undo", "undo", "role", "role", "page", "page", "page", "login", "password"}

func drawRoles(r *rand.Rand) []move {
	moves := make([]move, 10+r.IntN(20))
	for i := range moves {
		m := &request{
			what: requestKinds[r.IntN(len(requestKinds))], who: r.IntN(6) - 1, role: r.IntN(4), arg: r.IntN(1000),
			host: "gate.example", entry: pick(r, "x@a.example", "y@a.example", "a.example"), list: pick(r, "blocked", "allowed", "own"),
			until: pick(r, "1h", "1h", "", "48h"), proxy: pick(r, "192.0.2.9:4000", "127.0.0.1:4000", "[::1]:4000"),
			forwarded: pick(r, "", "203.0.113.1", "203.0.113.1, 203.0.113.2", "203.0.113.3,203.0.113.1", "rubbish"),
			unix:      r.IntN(2) == 0, https: r.IntN(2) == 0, sso: r.IntN(2) == 0,
		}
		if m.list == "own" {
			m.recipient = pick(r, "u@b.example", "@b.example", "u@c.example")
		}
		if m.list == "blocked" && r.IntN(2) == 0 {
			m.entry = "!" + m.entry
		}
		if r.IntN(8) == 0 {
			m.host = pick(r, "evil.example", "gate.example:8080")
		}
		if r.IntN(3) == 0 {
			m.site, m.origin = pick(r, "", "same-origin", "same-site", "cross-site", "none"), pick(r, "", "http://gate.example", "http://evil.example")
		}
		moves[i] = m
	}
	return moves
}

// rolesPassword is that of all users.
const rolesPassword = "correct horse battery"

// rolesUsers returns a directory with users of each role, one that is bound to a domain, and a session
// of each: to hash passwords takes long.
var rolesUsers = sync.OnceValues(func() (files fstest.MapFS, cookies []string) {
	dir := must(os.MkdirTemp(memory(), "world-accounts-*"))
	defer os.RemoveAll(dir)
	s := accounts.Open(dir)
	defer s.Close()
	for i, name := range rolesNames {
		role, domains := roleOf(i)
		check(s.AddUser(name, rolesPassword, role, domains))
		session := must(s.Login(context.Background(), name, rolesPassword, accounts.Origin{Address: "192.0.2.1"}))
		cookies = append(cookies, session.Cookie)
	}
	files = fstest.MapFS{}
	for _, e := range must(os.ReadDir(dir)) {
		files[e.Name()] = &fstest.MapFile{Data: read(filepath.Join(dir, e.Name())), Mode: 0o600}
	}
	return files, cookies
})

var rolesNames = []string{"viewer", "helpdesk", "editor", "admin", "bound"}

// roleOf returns the role of a user, and the domains that it is bound to.
func roleOf(i int) (accounts.Role, []string) {
	if i == 4 {
		return accounts.Editor, []string{"b.example"}
	}
	return accounts.Role(i), nil
}

const rolesConfig = `
hostname = "gate.example"
[state]
dir = "state"
[[list]]
name = "blocked"
managed = true
default = true
[[list]]
name = "allowed"
managed = true
type = "allow"
[[list]]
name = "own"
managed = true
type = "allow"
per_recipient = true
`

// A rolesWorld is a console with real lists and accounts.
type rolesWorld struct {
	world   *world
	dir     string
	console *console.Console
	url     url.URL
	log     bytes.Buffer
	store   *accounts.Store
	cookies []string
	tokens  []roleToken
	changes []roleChange
	logins  int
}

// A roleToken is a token, whose role changes.
type roleToken struct {
	secret string
	role   accounts.Role
	domain string
}

// A roleChange is a change that was made.
type roleChange struct {
	id        string
	who       int
	role      accounts.Role
	recipient string
}

func playRoles(w *world, moves []move) (err error) {
	users, cookies := rolesUsers()
	s := &rolesWorld{world: w, dir: filepath.Join(w.dir, "state"), cookies: cookies, url: url.URL{Host: "gate.example"}}
	check(os.CopyFS(filepath.Join(w.dir, "accounts"), users))
	path := filepath.Join(w.dir, "config.toml")
	check(os.WriteFile(path, []byte(rolesConfig), 0o600))
	check(os.Mkdir(s.dir, 0o700))
	c := must(config.Load(path))
	get := func() *config.Config { return c }
	check(managed.Make(c))
	lists := must(setup.BlocklistConfig(c, nil))
	lists.PollInterval, lists.Probes = time.Hour, -1
	live := must(store.Open(context.Background(), lists))
	defer live.Close()
	s.store = accounts.Open(filepath.Join(w.dir, "accounts"))
	defer s.store.Close()
	s.console = must(console.New(console.Options{
		Config: get, Settings: func() console.Settings { return console.Settings{URL: &s.url, SSOHeader: "X-Remote-User"} },
		Set: live.Set, Accounts: s.store, Editor: managed.New(get, live), Logger: slog.New(slog.NewTextHandler(&s.log, nil)),
	}))
	defer s.console.Close()
	for i := range rolesNames {
		s.tokens = append(s.tokens, roleToken{})
		s.setRole(i, i)
	}
	for i, m := range moves {
		if err = s.move(i+1, m.(*request)); err != nil {
			break
		}
	}
	return err
}

// setRole gives the token of an account another role.
func (s *rolesWorld) setRole(who, as int) {
	name := "t-" + rolesNames[who]
	if s.tokens[who].secret != "" {
		check(s.store.RemoveToken(name))
	}
	role, domains := roleOf(as)
	s.tokens[who] = roleToken{secret: must(s.store.AddToken(name, role, domains)), role: role, domain: strings.Join(domains, "")}
}

func (s *rolesWorld) move(n int, m *request) error {
	if m.what == "role" {
		if m.who >= 0 {
			s.world.tell("%d. %s becomes %s", n, rolesNames[m.who], rolesNames[m.role])
			s.setRole(m.who, m.role)
		}
		return nil
	}
	method, path, body, want := s.plan(m)
	if path == "" {
		return nil
	}
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	s.fill(r, m)
	before := s.lists()
	s.log.Reset()
	w := httptest.NewRecorder()
	s.console.ServeHTTP(w, r)
	status := w.Code
	s.world.tell("%d. %s %s by %d (unix %t, https %t, sso %t, Host %s, site %s, origin %s): %d, %v", n, m.what, m.entry, m.who, m.unix, m.https, m.sso, m.host, m.site, m.origin, status, want)
	if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "frame-ancestors 'none'") || !strings.Contains(policy, "default-src 'none'") {
		return fmt.Errorf("%s %s: a page of another site may frame it: %q", method, path, policy)
	}
	if !slices.Contains(want, status) {
		return fmt.Errorf("%s %s by %s: %d, not %v: %.300s", method, path, m, status, want, w.Body)
	}
	if status >= 300 && s.lists() != before {
		return fmt.Errorf("%s %s by %s: %d, and a list has changed", method, path, m, status)
	}
	if m.what == "login" && status == http.StatusUnauthorized {
		if client := "client=" + m.client() + " "; !strings.Contains(s.log.String(), client) {
			return fmt.Errorf("a login from %s, forwarded for %q, is not counted for %s: %s", m.proxy, m.forwarded, client, &s.log)
		}
	}
	if status < 300 {
		s.note(m, w.Body.Bytes())
	}
	return nil
}

// lists returns the texts of all lists.
func (s *rolesWorld) lists() (all string) {
	for _, l := range []string{"blocked", "allowed", "own"} {
		all += string(read(filepath.Join(s.dir, managed.Dir, l+".txt"))) + "\x00"
	}
	return all
}

// client returns which address a request counts for: behind a proxy on this machine the one that it
// has added.
func (m *request) client() string {
	host := strings.Trim(m.proxy[:strings.LastIndex(m.proxy, ":")], "[]")
	local := host != "192.0.2.9"
	if !m.unix && !(local && m.https) {
		return host
	}
	fields := strings.Split(m.forwarded, ",")
	switch last := strings.TrimSpace(fields[len(fields)-1]); {
	case strings.HasPrefix(last, "203."):
		return last
	case m.unix:
		return "unix"
	}
	return host
}

// fill fills a request's header fields.
func (s *rolesWorld) fill(r *http.Request, m *request) {
	r.Host, r.RemoteAddr = m.host, m.proxy
	s.console.Unix, s.url.Scheme = m.unix, map[bool]string{false: "http", true: "https"}[m.https]
	for name, value := range map[string]string{"Sec-Fetch-Site": m.site, "Origin": m.origin, "X-Forwarded-For": m.forwarded} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	cookie := map[bool]string{false: "spamgate", true: "__Host-spamgate"}[m.https]
	switch {
	case m.who < 0:
	case strings.HasPrefix(r.URL.Path, "/api/"):
		r.Header.Set("Authorization", "Bearer "+s.tokens[m.who].secret)
	case m.sso && m.what == "page":
		r.Header.Set("X-Remote-User", rolesNames[m.who])
	case m.what != "login":
		r.AddCookie(&http.Cookie{Name: cookie, Value: s.cookies[m.who]})
	}
	if r.Method == http.MethodPost && !strings.HasPrefix(r.URL.Path, "/api/") {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
}

var rolesPages = []string{"/account", "/changes", "/settings", "/login"}

// plan returns a request, and the statuses that the table allows for it.
func (s *rolesWorld) plan(m *request) (method, path, body string, want []int) {
	method = http.MethodPost
	allowed := []int{200, 201, 404, 409}
	switch m.what {
	case "add":
		path = "/api/v1/lists/" + m.list + "/entries"
		body = string(must(json.Marshal(map[string]string{"entry": m.entry, "for": m.recipient, "until": m.until})))
	case "remove":
		method, path = http.MethodDelete, "/api/v1/lists/"+m.list+"/entries/"+url.PathEscape(m.entry)+"?for="+url.QueryEscape(m.recipient)
	case "undo":
		if len(s.changes) == 0 {
			return "", "", "", nil
		}
		path, body = "/api/v1/changes/"+s.changes[m.arg%len(s.changes)].id+"/undo", "{}"
	case "page":
		method, path = http.MethodGet, rolesPages[m.arg%len(rolesPages)]
	case "login":
		if s.logins++; s.logins > 3 { // more are limited
			return "", "", "", nil
		}
		path, body = "/login", "name=nobody&password=guess"
	case "password":
		if s.logins++; s.logins > 3 || m.who < 0 {
			return "", "", "", nil
		}
		path, body = "/account/password", "old="+[]string{"", "guess", " ", "correct"}[m.arg%4]+"&new=another+good+password&again=another+good+password"
	}
	switch {
	case m.host != "gate.example":
		return method, path, body, []int{421}
	case method != http.MethodGet && m.foreign():
		return method, path, body, []int{403}
	}
	switch m.what {
	case "page":
		want = m.page(path)
	case "login":
		want = []int{401}
	case "password":
		want = []int{422}
	default:
		want = allowed
		if m.who < 0 {
			want = []int{401}
		} else if !s.may(m) {
			want = []int{403, 404}
		}
	}
	return method, path, body, want
}

// foreign reports whether a browser says that a page of another site has made the request.
func (m *request) foreign() bool {
	if m.site != "" {
		return m.site != "same-origin" && m.site != "none"
	}
	return m.origin == "http://evil.example"
}

// page returns the statuses of a page. The field that names a user counts through the socket only.
func (m *request) page(path string) []int {
	in := m.who >= 0 && (!m.sso || m.unix)
	switch {
	case path == "/login" && in:
		return []int{303}
	case path == "/login":
		return []int{200}
	case !in && m.site == "cross-site":
		return []int{200} // it asks again, as the page of this site
	case !in:
		return []int{303}
	case path == "/settings" && rolesNames[m.who] == "bound":
		return []int{403}
	}
	return []int{200}
}

// may is the table of who may edit what.
func (s *rolesWorld) may(m *request) bool {
	a := s.tokens[m.who]
	own := func(recipient string) bool {
		return a.domain == "" || recipient != "" && strings.HasSuffix(recipient, "@"+a.domain)
	}
	switch m.what {
	case "add":
		letIn := m.list != "blocked" || m.entry[0] == '!'
		if !letIn || a.role >= accounts.Editor {
			return a.role >= accounts.Editor && own(m.recipient)
		}
		return a.role == accounts.Helpdesk && own(m.recipient) && m.until == "1h"
	case "remove":
		return a.role >= accounts.Editor && own(m.recipient)
	}
	c := s.changes[m.arg%len(s.changes)]
	least := accounts.Editor
	if c.who == m.who && c.role <= a.role {
		least = accounts.Helpdesk
	}
	return a.role >= least && own(c.recipient)
}

// note remembers a change, to be undone.
func (s *rolesWorld) note(m *request, body []byte) {
	var made struct{ Change string }
	if m.what == "page" || json.Unmarshal(body, &made) != nil || made.Change == "" {
		return
	}
	recipient := m.recipient
	if m.what == "undo" {
		recipient = s.changes[m.arg%len(s.changes)].recipient
	}
	s.changes = append(s.changes, roleChange{id: made.Change, who: m.who, role: s.tokens[m.who].role, recipient: recipient})
}
