package browser

import (
	"context"
	"net/url"
	"testing"

	"spamgate/internal/e2e/harness"
)

// site is a gate with a console.
type site struct {
	*harness.Gate
	url string
	api harness.API // as an administrator
}

// startSite starts a gate with a console, and an account of each role whose name it is.
func startSite(t testing.TB, s harness.Setup) *site {
	t.Helper()
	return startPrepared(t, s, func(string) {})
}

// startPrepared is startSite for a gate that finds something in its directory.
func startPrepared(t testing.TB, s harness.Setup, prepare func(dir string)) *site {
	t.Helper()
	addr := harness.FreeAddr(t)
	s.Tables += harness.ConsoleTable(addr)
	if s.Lists == "" {
		s.Lists = harness.ManagedLists
	}
	if s.Files == nil {
		s.Files = map[string]string{}
	}
	if s.Files["blocked.txt"] == "" {
		s.Files["blocked.txt"] = "spam.example  # unsolicited mail\n"
	}
	dir := s.Dir(t)
	prepare(dir)
	g := harness.Serve(t, dir)
	for _, role := range []string{"viewer", "helpdesk", "editor", "admin"} {
		g.AddUser(role, role)
	}
	url := "http://" + addr
	return &site{g, url, harness.API{URL: url, Token: g.AddToken("tests", "admin")}}
}

// login opens a tab as a user.
func (s *site) login(t testing.TB, browser context.Context, name string) *tab {
	t.Helper()
	b := newTab(t, browser, s.url)
	b.open("/login")
	b.login(name)
	return b
}

// login fills in the login page.
func (b *tab) login(name string) {
	b.t.Helper()
	b.fill("Name", name)
	b.fill("Password", harness.Password)
	b.click("Log in")
	if p, _ := url.Parse(b.path()); p.Path == "/login" {
		b.t.Fatalf("%s is not let in:\n%s", name, b.text())
	}
}

// refused sends a message that is refused, and returns its id.
func (s *site) refused(t testing.TB, from, to, list, reason string) string {
	t.Helper()
	reply, err := harness.MustDial(t, s.Addr).Verdict(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return harness.WantRefusal(t, reply, from, list, reason)
}
