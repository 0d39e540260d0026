// Package suffix holds publicsuffix.org's list: the domains below which strangers
// register domains.
//
// The list is the one of golang.org/x/net/publicsuffix. That package is not used here,
// because it imports net/http.
package suffix

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// file is the list. A head with source and licence is followed by the rules of the
// ICANN section and those of the private one, each sorted and after an empty line. After
// an update of golang.org/x/net:
//
//	go test ./internal/suffix -run=IsCurrent -update
//
//go:embed suffixes.txt
var file string

// tenants are names below which customers send mail from names of their own, as in the
// private section, but which publicsuffix.org's list lacks (November 2026). Their
// owners say so:
var tenants = []string{
	"atlassian.net",   // jira@SITE.atlassian.net: community.atlassian.com, Configure custom email addresses for an organization
	"freshdesk.com",   // support@COMPANY.freshdesk.com: support.freshdesk.com, article 50000009268
	"onmicrosoft.com", // TENANT.onmicrosoft.com: learn.microsoft.com, Add and replace your onmicrosoft.com fallback domain
	"zendesk.com",     // support@SUBDOMAIN.zendesk.com: support.zendesk.com, article 4408887388058
}

// sections are the rules of file.
var sections = sync.OnceValue(func() (s struct{ icann, private rules }) {
	parts := strings.Split(file, "\n\n")
	s.icann, s.private = newRules(parts[1]), newRules(parts[2])
	return s
})

// Of reports whether a domain in normal form is a suffix of the ICANN section, or of the
// private section. A single label that is not listed, and a name whose owner gives names
// below it to customers, count as private.
func Of(d string) (icann, private bool) {
	s := sections()
	icann = s.icann.cover(d)
	return icann, !icann && (s.private.cover(d) || slices.Contains(tenants, d) || !strings.Contains(d, "."))
}

// IsPublic reports whether strangers register domains below a domain in normal form: a single
// label, or a suffix of the ICANN section.
func IsPublic(d string) bool {
	icann, _ := Of(d)
	return icann || !strings.Contains(d, ".")
}

// Rules returns the rules of both sections and the names of tenants: com, *.ck, !www.ck.
func Rules() []string {
	s := sections()
	return slices.Concat(s.icann, s.private, tenants)
}

// Organization returns the domain that an owner registered, of which d, in normal form,
// is a part: d without the labels before the one above its public suffix. It is empty if
// d is a public suffix itself.
func Organization(d string) string {
	organization := ""
	for {
		if icann, private := Of(d); icann || private {
			return organization
		}
		organization = d
		_, d, _ = strings.Cut(d, ".")
	}
}

// rules are the sorted rules of a section.
type rules []string

func newRules(section string) rules {
	return strings.Split(strings.TrimSuffix(section, "\n"), "\n")
}

// cover reports whether a rule makes d a suffix.
func (r rules) cover(d string) bool {
	if r.have(d) {
		return true
	}
	_, parent, ok := strings.Cut(d, ".")
	return ok && r.have("*."+parent) && !r.have("!"+d)
}

func (r rules) have(rule string) bool {
	_, found := slices.BinarySearch(r, rule)
	return found
}
