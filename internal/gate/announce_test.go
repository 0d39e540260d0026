package gate

import (
	"testing"

	"spamgate/internal/config"
)

// TestRecipient: what is to be tried must not be refused for its recipient.
func TestRecipient(t *testing.T) {
	for want, domains := range map[string][]string{
		"you@example.net": nil,
		"you@example.org": {"example.org", "example.com"},
		"you@example.com": {".example.com"},
	} {
		c := &config.Config{Policy: config.Policy{RecipientDomains: domains}}
		if got := recipient(c); got != want {
			t.Errorf("%q: %s", domains, got)
		}
	}
}
