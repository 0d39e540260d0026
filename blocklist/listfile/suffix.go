package listfile

import (
	"slices"
	"strings"
)

// checkSuffix refuses a domain under which strangers register theirs: a single
// label, or a public suffix of the ICANN section of publicsuffix.org's list. The
// list's private section (github.io) names real owners, whom one may well block.
//
// A domain with a wildcard rule below it (sch.uk for *.sch.uk) counts as a
// suffix: all its children are. One look-up of a child answers for both: its
// suffix is then the child or d, else something shorter.
func checkSuffix(d string) error {
	if strings.IndexByte(d, '.') < 0 {
		return errSingleLabel
	}
	if icann, _ := suffixOf(d); icann {
		return errSuffix
	}
	return nil
}

// tenants are names under which strangers have names of their own that mail comes
// from, as in the private section, and that publicsuffix.org's list lacks (November
// 2026). Their owners say so:
var tenants = []string{
	"atlassian.net",   // jira@SITE.atlassian.net: community.atlassian.com, Configure custom email addresses for an organization
	"freshdesk.com",   // support@COMPANY.freshdesk.com: support.freshdesk.com, article 50000009268
	"onmicrosoft.com", // TENANT.onmicrosoft.com: learn.microsoft.com, Add and replace your onmicrosoft.com fallback domain
	"zendesk.com",     // support@SUBDOMAIN.zendesk.com: support.zendesk.com, article 4408887388058
}

// HasTenants reports whether strangers have names of their own below a domain in
// normal form, so that its owner does not answer for them: a suffix of the private
// section of publicsuffix.org's list, or the like.
func HasTenants(domain string) bool {
	_, private := suffixOf(domain)
	return private && strings.Contains(domain, ".")
}

// suffixOf reports whether a domain of several labels is a suffix of the ICANN
// section, or of the private section or one with tenants.
func suffixOf(d string) (icann, private bool) {
	if s := suffixes(); s.maybe(d) {
		return s.of(d)
	}
	return false, false
}

// of is suffixOf without the filter.
func (s *suffixList) of(d string) (icann, private bool) {
	icann = s.icann.cover(d)
	return icann, !icann && (s.private.cover(d) || slices.Contains(tenants, d) || !strings.Contains(d, "."))
}
