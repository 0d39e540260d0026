package smtpfilter

import (
	"net"
	"testing"
)

// The set of recipient domains is made when settings are, not for each recipient or
// header.
func TestRecipientDomainsAreIndexedOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Hostname: "gate.example"})
	p := s.Listen(l, "", Settings{Policy: Policy{RecipientDomains: []string{"example.org"}}})
	defer s.Shutdown(t.Context())
	defer l.Close()
	check := func(domain string) {
		t.Helper()
		policy := &p.settings.Load().Policy
		if first := policy.index(); first != policy.index() || !first.has(domain) {
			t.Errorf("the set is made again for each use, or lacks %s", domain)
		}
	}
	check("example.org")
	p.Apply(Settings{Policy: Policy{RecipientDomains: []string{"example.net"}}})
	check("example.net")
}
