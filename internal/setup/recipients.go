package setup

import (
	"slices"
	"strings"

	"spamgate/internal/config"
	"spamgate/internal/recipients"
)

// RecipientFiles returns the files with recipient domains, valid recipients and the recipients
// of policies.
func RecipientFiles(c *config.Config) []recipients.Spec {
	var specs []recipients.Spec
	if path, ok := c.Policy.DomainsFile(); ok {
		specs = append(specs, recipients.Spec{Kind: recipients.RecipientDomains, Path: path})
	}
	if path, ok := c.Policy.RecipientsFile(); ok {
		specs = append(specs, recipients.Spec{Kind: recipients.ValidRecipients, Path: path})
	}
	for _, p := range c.RecipientPolicies {
		if path, ok := p.File(); ok {
			specs = append(specs, recipients.Spec{Kind: recipients.RecipientPolicy, Policy: p.Name, Path: path})
		}
	}
	return specs
}

// ReadRecipients reads the files with recipients once, as a start would. It returns the
// errors of those without a usable version, with their place in the configuration.
func ReadRecipients(c *config.Config) ([]*recipients.File, error) {
	var files []*recipients.File
	var faults []*config.Error
	for _, spec := range RecipientFiles(c) {
		f, err := recipients.Read(spec, c.State.Dir)
		if err != nil {
			faults = append(faults, RecipientFault(c, spec, err))
			continue
		}
		files = append(files, f)
	}
	return files, config.Join(faults)
}

// RecipientFault returns an error of a file with recipients, with its place in the
// configuration.
func RecipientFault(c *config.Config, spec recipients.Spec, err error) *config.Error {
	what, hint := err.Error(), ""
	if i := strings.LastIndex(what, "; "); i >= 0 {
		what, hint = what[:i], what[i+2:]
	}
	key := "policy." + string(spec.Kind)
	if i := slices.IndexFunc(c.RecipientPolicies, func(p config.RecipientPolicy) bool { return p.Name == spec.Policy }); i >= 0 {
		key = config.RecipientPolicyKey(i, "match")
	}
	return c.Fault(key, what, hint)
}
