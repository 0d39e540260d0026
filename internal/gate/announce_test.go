package gate

import "testing"

// TestRecipient: what is to be tried must not be refused for its recipient.
func TestRecipient(t *testing.T) {
	for want, domains := range map[string][]string{
		"you@example.net": nil,
		"you@example.org": {"example.org", "example.com"},
		"you@example.com": {".example.com"},
	} {
		if got := recipient(domains); got != want {
			t.Errorf("%q: %s", domains, got)
		}
	}
}
