package console

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/accounts"
)

// TestRolesAndRoutes compares who passes the router to each route with testdata/roles.txt,
// which is written by hand: a new route, or another right, has to be written there, too.
func TestRolesAndRoutes(t *testing.T) {
	text, err := os.ReadFile("testdata/roles.txt")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			want = append(want, strings.Join(strings.Fields(line), " "))
		}
	}
	got := passing(t)
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("testdata/roles.txt lacks: %s", line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("testdata/roles.txt has: %s", line)
		}
	}
}

// passing returns a line for each route, with the accounts that pass.
func passing(t *testing.T) (lines []string) {
	c := testConsole(t)
	names := []string{"viewer", "helpdesk", "editor", "admin", "bound"}
	cookies, tokens := map[string]*http.Cookie{}, map[string]string{}
	for _, name := range names {
		cookies[name] = login(t, c, name)
		role, domains := accounts.Editor, []string{"b.example"}
		if name != "bound" {
			role, _ = accounts.ParseRole(name)
			domains = nil
		}
		token, err := c.Accounts.AddToken("token-"+name, role, domains)
		if err != nil {
			t.Fatal(err)
		}
		tokens[name] = token
	}
	for i := range c.routes {
		c.routes[i].serve = func(x *exchange) error {
			x.w.WriteHeader(http.StatusNoContent)
			return nil
		}
	}
	c.handler = c.guard(c.mux())
	for _, r := range c.Routes() {
		line := r.Method + " " + r.Path
		for _, name := range append([]string{"nobody"}, names...) {
			path := strings.NewReplacer("{$}", "", "{", "", "}", "").Replace(r.Path)
			request := httptest.NewRequest(r.Method, "http://gate.example"+path, nil)
			if cookie := cookies[name]; cookie != nil {
				request.AddCookie(cookie)
			}
			if isAPI(request) && name != "nobody" {
				if response, _ := ask(c, request); response.StatusCode != http.StatusUnauthorized {
					t.Errorf("%s %s by the session of %s: %s", r.Method, path, name, response.Status)
				}
			}
			if token := tokens[name]; token != "" && isAPI(request) {
				request.Header.Set("Authorization", "Bearer "+token)
			}
			switch response, body := ask(c, request); response.StatusCode {
			case http.StatusNoContent:
				line += " " + name
			case http.StatusForbidden, http.StatusUnauthorized, http.StatusSeeOther:
			default:
				t.Errorf("%s by %s: %s %s", r.Method+" "+path, name, response.Status, body)
			}
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		t.Fatal("no routes")
	}
	return lines
}

// TestPanic has a handler panic: the log says so, and the client gets an answer.
func TestPanic(t *testing.T) {
	var log bytes.Buffer
	c := testConsole(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	for i := range c.routes {
		c.routes[i].serve = func(*exchange) error { panic("ouch") }
	}
	c.handler = c.guard(c.mux())
	response, body := ask(c, get("/login"))
	if response.StatusCode != http.StatusInternalServerError || strings.Contains(body, "ouch") {
		t.Errorf("%s\n%s", response.Status, body)
	}
	if !strings.Contains(log.String(), "ouch") || !strings.Contains(log.String(), "roles_test.go") {
		t.Errorf("the log has %s", log.String())
	}
}
