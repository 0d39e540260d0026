package smtpfilter_test

import (
	"testing"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/wire"
)

// TestRecipientDomains wants a domain to match itself only, and one with a leading dot its
// subdomains too.
func TestRecipientDomains(t *testing.T) {
	p := smtpfilter.Policy{RecipientDomains: []string{"example.org", ".sub.example", ".x.y.example"}}
	for domain, want := range map[string]bool{
		"example.org": true, "a.example.org": false, "org": false,
		"sub.example": true, "a.sub.example": true, "a.b.sub.example": true, "asub.example": false,
		"x.y.example": true, "a.x.y.example": true, "y.example": false,
	} {
		path, err := wire.ParsePath("a@" + domain)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.TakesRecipient(verdict.ParseRecipient(path.String())); got != want {
			t.Errorf("%s is taken: %t, want %t", domain, got, want)
		}
	}
	p.RecipientDomains = []string{"example.net", ".other.example", "z.example"}
	if path, _ := wire.ParsePath("a@a.other.example"); !p.TakesRecipient(verdict.ParseRecipient(path.String())) {
		t.Error("changed domains do not count")
	}
}
