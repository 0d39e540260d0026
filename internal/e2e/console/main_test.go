package console

import (
	"testing"

	"spamgate/internal/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// A site is a gate with a console.
type site struct {
	*harness.Gate
	url string
	api harness.API // as an administrator
}

// startSite starts a gate with managed lists and a console at a TCP address.
func startSite(t testing.TB, s harness.Setup) *site {
	t.Helper()
	s, url := consoleSetup(t, s)
	return newSite(harness.StartGate(t, s), url)
}

// consoleSetup adds a console to a gate that is to be started, and returns its URL.
func consoleSetup(t testing.TB, s harness.Setup) (harness.Setup, string) {
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
	return s, "http://" + addr
}

func newSite(g *harness.Gate, url string) *site {
	return &site{g, url, harness.API{URL: url, Token: g.AddToken("tests", "admin")}}
}

// as returns the API for a new token of a role.
func (s *site) as(name, role string, domains ...string) harness.API {
	s.T.Helper()
	return harness.API{URL: s.url, Token: s.AddToken(name, role, domains...)}
}
