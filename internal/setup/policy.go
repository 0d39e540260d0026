package setup

import (
	"fmt"
	"slices"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/config"
	"spamgate/internal/recipients"
	"spamgate/smtpfilter"
)

// Policy returns the policy for a listener's messages. What is in files SetRecipients sets.
func Policy(c *config.Config, l config.Listener) smtpfilter.Policy {
	p := policyOf(c)
	p.ExemptAuthenticated = l.ExemptAuthenticated
	p.MaxRecipients = int(l.MaxRecipients)
	p.MaxHops = int(l.MaxHops)
	p.Tarpit, p.TarpitExempt = l.Tarpit, l.LimitsExempt
	if _, inFile := c.Policy.DomainsFile(); !inFile {
		p.RecipientDomains = c.Policy.RecipientDomains
	}
	if _, inFile := c.Policy.RecipientsFile(); !inFile && len(c.Policy.ValidRecipients) > 0 {
		valid := smtpfilter.NewAddressSet(slices.Values(c.Policy.ValidRecipients))
		p.ValidRecipients = func() *smtpfilter.AddressSet { return valid }
	}
	return p
}

// DoorPolicy returns the policy for the messages of a door. It has no limits, and the
// recipient domains only complete recipients: which recipients exist, and how many a message
// may have, is the matter of the mail server that asks. The recipients that are in files
// SetRules sets.
func DoorPolicy(c *config.Config, d config.Door) smtpfilter.Policy {
	p := policyOf(c)
	p.ExemptAuthenticated = d.ExemptAuthenticated
	if _, inFile := c.Policy.DomainsFile(); !inFile && len(c.Policy.RecipientDomains) > 0 {
		own := smtpfilter.NewDomainSet(c.Policy.RecipientDomains)
		p.OwnDomains = func() *smtpfilter.DomainSet { return own }
	}
	return p
}

// policyOf returns what the policies of all listeners and doors have in common.
func policyOf(c *config.Config) smtpfilter.Policy {
	p := smtpfilter.Policy{
		HeaderFields:     c.Headers.Check,
		MaxHeaderBytes:   int(c.Headers.MaxBytes),
		MaxAddresses:     int(c.Headers.MaxAddresses),
		MaxFieldBytes:    int(c.Headers.MaxFieldBytes),
		CheckBounces:     c.Headers.CheckBounces,
		ExemptRecipients: c.Policy.ExemptRecipients,
		ExemptClients:    c.Policy.ExemptClients,
		RejectText:       c.Policy.RejectText,
		Contact:          c.Policy.Contact,
	}
	if c.Policy.MixedHeaders == "tag" {
		p.MixedHeaders = smtpfilter.MixedTag
	}
	for _, r := range c.RecipientPolicies {
		p.Recipients = append(p.Recipients, recipientRule(r))
	}
	return p
}

// recipientRule returns the rule of a recipient policy. One whose recipients are in a file
// matches nobody yet.
func recipientRule(r config.RecipientPolicy) smtpfilter.RecipientRule {
	rule := smtpfilter.RecipientRule{Name: r.Name, Exempt: r.Exempt, Lists: r.Lists, MaxAction: verdict.ActionOf(r.MaxAction), Monitor: r.Mode == "monitor"}
	rule.Match = func(verdict.Recipient) bool { return false }
	if _, inFile := r.File(); !inFile {
		rule.Match = smtpfilter.NewRecipientSet(slices.Values(r.Match)).Has
	}
	return rule
}

// SetRecipients makes a listener's policy follow files with recipients.
func SetRecipients(p *smtpfilter.Policy, files []*recipients.File) {
	for _, f := range files {
		switch f.Spec().Kind {
		case recipients.RecipientDomains:
			p.Domains = f.Domains
		case recipients.ValidRecipients:
			p.ValidRecipients = f.Addresses
		}
	}
	SetRules(p, files)
}

// SetRules makes the rules for recipients of a listener's or door's policy follow files, and
// the domains that complete recipients.
func SetRules(p *smtpfilter.Policy, files []*recipients.File) {
	p.Recipients = slices.Clone(p.Recipients)
	for _, f := range files {
		if f.Spec().Kind == recipients.RecipientDomains {
			p.OwnDomains = f.Domains
		}
		i := slices.IndexFunc(p.Recipients, func(r smtpfilter.RecipientRule) bool {
			return f.Spec().Kind == recipients.RecipientPolicy && r.Name == f.Spec().Policy
		})
		if i >= 0 {
			p.Recipients[i].Match = func(rcpt verdict.Recipient) bool { return f.Set().Has(rcpt) }
		}
	}
}

// Wrappings returns the ways to wrap a sender that are undone.
func Wrappings(c *config.Config) (w sender.Wrappings) {
	kinds := map[string]sender.Wrappings{"srs": sender.SRS, "batv": sender.BATV}
	for _, name := range c.Policy.Unwrap {
		w |= kinds[name]
	}
	return w
}

// provenBy returns the proofs of which an entry of an allow list needs one.
func provenBy(names []string) (all verdict.Proofs, err error) {
	for _, name := range names {
		var p verdict.Proofs
		if err := p.UnmarshalText([]byte(name)); err != nil {
			return 0, fmt.Errorf("proven_by: %w", err)
		}
		all |= p
	}
	return all, nil
}
