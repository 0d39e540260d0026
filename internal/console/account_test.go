package console

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

func TestAccountPage(t *testing.T) {
	c := testConsole(t)
	admin, bound := login(t, c, "admin"), login(t, c, "bound")
	wantText(t, visit(t, c, admin, "/account", 200), "Role admin", "Recipients all", "end sessions of others", "this one")
	wantText(t, visit(t, c, bound, "/account", 200), "only at b.example", "!see totals", "!end sessions of others")
	helpdesk := visit(t, c, login(t, c, "helpdesk"), "/account?done=session", 200)
	wantText(t, helpdesk, "for at most 24 hours", "The session has been ended.")
	wantText(t, visit(t, c, admin, "/account?done=<b>", 200), "!<b>")
}

// TestEndSessions ends sessions from another one.
func TestEndSessions(t *testing.T) {
	c := testConsole(t)
	other := login(t, c, "viewer")
	login(t, c, "admin") // somebody else's session stays
	this, third := login(t, c, "viewer"), login(t, c, "viewer")

	ids := fieldsOf(visit(t, c, this, "/account", 200), "session")
	if len(ids) != 2 {
		t.Fatalf("the page offers to end %q, want the two other sessions", ids)
	}
	for _, id := range []string{ids[0], ids[0], "unknown"} { // once more does no harm
		response, body := ask(c, with(post("/account/sessions/end", "session", id), this))
		if response.StatusCode != http.StatusSeeOther {
			t.Fatalf("end: %s\n%s", response.Status, body)
		}
	}
	if alive(c, other) == alive(c, third) {
		t.Errorf("after the end of one session: %v and %v", alive(c, other), alive(c, third))
	}
	if response, _ := ask(c, with(post("/account/sessions/end-others"), this)); response.StatusCode != http.StatusSeeOther {
		t.Fatalf("end others: %s", response.Status)
	}
	if alive(c, other) || alive(c, third) || !alive(c, this) {
		t.Errorf("after the end of all others: %v, %v, this one %v", alive(c, other), alive(c, third), alive(c, this))
	}
	if n, err := c.Accounts.Sessions("admin"); err != nil || len(n) != 1 {
		t.Errorf("sessions of somebody else: %v, %v", n, err)
	}
}

// alive reports whether a cookie opens a page.
func alive(c *Console, cookie *http.Cookie) bool {
	response, _ := ask(c, with(get("/account"), cookie))
	return response.StatusCode == http.StatusOK
}

// fieldsOf returns the values of the fields of a name on a page.
func fieldsOf(body, name string) (values []string) {
	z := html.NewTokenizer(strings.NewReader(body))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return values
		case html.StartTagToken:
			t := z.Token()
			given := map[string]string{}
			for _, a := range t.Attr {
				given[a.Key] = a.Val
			}
			if t.DataAtom == atom.Input && given["name"] == name {
				values = append(values, given["value"])
			}
		}
	}
}

func TestChangePassword(t *testing.T) {
	c := testConsole(t)
	this, other := login(t, c, "viewer"), login(t, c, "viewer")
	for _, tt := range []struct{ old, fresh, again, want string }{
		{password, "another good password", "another bad password", "not repeated alike"},
		{"wrong password", "another good password", "another good password", "The old password is wrong."},
		{password, "short", "short", "use at least 12"},
		{password, "", "", "use at least 12"},
	} {
		response, body := ask(c, with(post("/account/password", "old", tt.old, "new", tt.fresh, "again", tt.again), this))
		if response.StatusCode != http.StatusUnprocessableEntity {
			t.Fatalf("%q to %q: %s\n%s", tt.old, tt.fresh, response.Status, body)
		}
		wantText(t, body, tt.want, "!"+tt.old, "!another good password")
		if err := checkHTML(body); err != nil {
			t.Error(err)
		}
	}
	response, body := ask(c, with(post("/account/password", "old", password, "new", "another good password", "again", "another good password"), this))
	if response.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s\n%s", response.Status, body)
	}
	fresh := cookieOf(t, response, "spamgate")
	wantText(t, visit(t, c, fresh, response.Header.Get("Location"), 200), "The password has been changed.")
	if alive(c, other) || alive(c, this) {
		t.Error("a session from before the change is alive")
	}
}

// TestAccountOfProxy checks that nobody whom a proxy logs in changes a password here.
func TestAccountOfProxy(t *testing.T) {
	c := testConsole(t, func(o *Options) { o.Unix, o.Settings = true, settings("http://gate.example", "X-User") })
	addUser(t, c, "editor")
	byProxy := func(r *http.Request) *http.Request {
		r.Header.Set("X-User", "editor")
		return r
	}
	_, body := ask(c, byProxy(get("/account")))
	wantText(t, body, "A proxy logs you in.", "!Change the password", "!Your sessions")
	response, body := ask(c, byProxy(post("/account/password", "old", password, "new", "another good password", "again", "another good password")))
	if response.StatusCode != http.StatusConflict {
		t.Errorf("%s\n%s", response.Status, body)
	}
}
