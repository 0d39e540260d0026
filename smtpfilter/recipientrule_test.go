package smtpfilter_test

import (
	"slices"
	"testing"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
)

// TestRuleKeepsProofs wants a verdict that waits for a signature still to name its domains after
// a rule for recipients was applied, so that the signature is verified.
func TestRuleKeepsProofs(t *testing.T) {
	proofs := []verdict.Proof{{By: verdict.DKIM, Domains: []string{"p.example"}}}
	for name, rule := range map[string]smtpfilter.RecipientRule{
		"monitor":    {Monitor: true},
		"max_action": {MaxAction: verdict.Tag},
		"neither":    {},
	} {
		class := smtpfilter.Class{Rule: &rule}
		f := verdict.Finding{Verdict: verdict.Verdict{
			Action: verdict.Reject, Pending: true, Proofs: proofs, Proved: &verdict.Verdict{ClearsMessage: true},
		}}
		class.Apply(&f)
		var domains []string
		for _, p := range f.Verdict.Proofs {
			domains = append(domains, p.Domains...)
		}
		if !f.Verdict.Pending || !slices.Equal(domains, []string{"p.example"}) {
			t.Errorf("%s: pending: %t, waits for %q", name, f.Verdict.Pending, domains)
		}
	}
}
