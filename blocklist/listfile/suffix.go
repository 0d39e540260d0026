package listfile

import (
	"strings"

	"spamgate/blocklist/sender"
	"spamgate/internal/suffix"
)

// checkSuffix refuses a domain below which strangers register domains: a single
// label, or a public suffix of the ICANN section of publicsuffix.org's list. The
// list's private section (github.io) has domains with one owner, who may well be
// blocked. A domain with a wildcard rule below it (sch.uk for *.sch.uk) counts as a
// suffix, since all its children are.
func checkSuffix(d string, k sender.Kind) error {
	errLabel, errPublic := errSingleLabel, errSuffix
	if k == sender.KindAtDomain {
		errLabel, errPublic = errLabelAlone, errSuffixAlone
	}
	if strings.IndexByte(d, '.') < 0 {
		return errLabel
	}
	if icann, _ := suffixOf(d); icann {
		return errPublic
	}
	return nil
}

// HasTenants reports whether strangers have names below a domain in normal form, so
// that its owner is not responsible for them: a suffix of the private section of
// publicsuffix.org's list, or the like.
func HasTenants(domain string) bool {
	_, private := suffixOf(domain)
	return private && strings.Contains(domain, ".")
}

// suffixOf implements suffix.Of with a filter before it.
func suffixOf(d string) (icann, private bool) {
	if suffixes().maybe(d) {
		return suffix.Of(d)
	}
	return false, false
}
