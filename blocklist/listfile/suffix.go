package listfile

import (
	"slices"
	"strings"

	"spamgate/blocklist/sender"
)

// checkSuffix refuses a domain below which strangers register domains: a single
// label, or a public suffix of the ICANN section of publicsuffix.org's list. The
// list's private section (github.io) has domains with one owner, who may well be
// blocked. A domain with a wildcard rule below it (sch.uk for *.sch.uk) counts as a
// suffix, since all its children are.
func checkSuffix(d string, k sender.Kind) error {
	label, suffix := errSingleLabel, errSuffix
	if k == sender.KindAtDomain {
		label, suffix = errLabelAlone, errSuffixAlone
	}
	if strings.IndexByte(d, '.') < 0 {
		return label
	}
	if icann, _ := suffixOf(d); icann {
		return suffix
	}
	return nil
}

// tenants are names below which customers send mail from names of their own, as in the
// private section, but which publicsuffix.org's list lacks (November 2026). Their
// owners say so:
var tenants = []string{
	"atlassian.net",   // jira@SITE.atlassian.net: community.atlassian.com, Configure custom email addresses for an organization
	"freshdesk.com",   // support@COMPANY.freshdesk.com: support.freshdesk.com, article 50000009268
	"onmicrosoft.com", // TENANT.onmicrosoft.com: learn.microsoft.com, Add and replace your onmicrosoft.com fallback domain
	"zendesk.com",     // support@SUBDOMAIN.zendesk.com: support.zendesk.com, article 4408887388058
}

// HasTenants reports whether strangers have names below a domain in normal form, so
// that its owner is not responsible for them: a suffix of the private section of
// publicsuffix.org's list, or the like.
func HasTenants(domain string) bool {
	_, private := suffixOf(domain)
	return private && strings.Contains(domain, ".")
}

// IsPublicSuffix reports whether strangers register domains below a domain in normal
// form: a single label, or a suffix of the ICANN section of publicsuffix.org's list.
func IsPublicSuffix(domain string) bool {
	return checkSuffix(domain, sender.KindDomain) != nil
}

// suffixOf reports whether a domain of several labels is a suffix of the ICANN
// section, or of the private section or one with tenants.
func suffixOf(d string) (icann, private bool) {
	if s := suffixes(); s.maybe(d) {
		return s.of(d)
	}
	return false, false
}

// of implements suffixOf without the filter.
func (s *suffixList) of(d string) (icann, private bool) {
	icann = s.icann.cover(d)
	return icann, !icann && (s.private.cover(d) || slices.Contains(tenants, d) || !strings.Contains(d, "."))
}
