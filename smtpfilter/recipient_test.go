package smtpfilter_test

import (
	"testing"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/wire"
)

// TestRoutesInRecipients wants a local part that a server may read as a route to be
// refused with recipient domains: with each of the characters, quoted and not.
func TestRoutesInRecipients(t *testing.T) {
	p := smtpfilter.Policy{RecipientDomains: []string{"example.org"}}
	for rcpt, want := range map[string]bool{
		"user@example.org":                 true,
		"user+tag@example.org":             true,
		`"user name"@example.org`:          true,
		"user%other.example@example.org":   false,
		"other.example!user@example.org":   false,
		`"user@other.example"@example.org`: false,
		`"user:other.example"@example.org`: false,
		`"host::user"@example.org`:         false,
		"user@other.example":               false,
	} {
		path, err := wire.ParsePath(rcpt)
		if err != nil {
			t.Fatalf("%s: %v", rcpt, err)
		}
		if got := p.TakesRecipient(verdict.ParseRecipient(path.String())); got != want {
			t.Errorf("%s is taken: %t, want %t", rcpt, got, want)
		}
		if !(&smtpfilter.Policy{}).TakesRecipient(verdict.ParseRecipient(path.String())) {
			t.Errorf("%s is not taken without recipient domains", rcpt)
		}
	}
}
