package smtpfilter

import (
	"net"
	"testing"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/nexthop"
)

// TestRecipientDomainSet wants the set of recipient domains to be made once, not for each
// recipient or header.
func TestRecipientDomainSet(t *testing.T) {
	nl, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hop, err := nexthop.NewMaildir(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	settings := func(domain string) Settings {
		return Settings{Checker: noChecker{}, NextHop: hop, Policy: Policy{RecipientDomains: []string{domain}}}
	}
	s := New(Config{Hostname: "gate.example"})
	l, err := s.Listen(nl, "", settings("example.org"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown(t.Context())
	check := func(domain string) {
		t.Helper()
		policy := &l.settings.Load().Policy
		if n := testing.AllocsPerRun(10, func() { policy.domainSet() }); n > 0 || !policy.domainSet().has(domain) {
			t.Errorf("the set is made again for each use, or lacks %s", domain)
		}
	}
	check("example.org")
	if _, err := l.Apply(settings("example.net")); err != nil {
		t.Fatal(err)
	}
	check("example.net")
}

// noChecker is a Checker that nobody asks.
type noChecker struct{ verdict.Checker }
