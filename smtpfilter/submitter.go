package smtpfilter

import (
	"slices"
	"strings"
)

// withoutSubmitter returns the parameters of MAIL with AUTH=<> in place of any
// other AUTH: a client that is not authenticated cannot vouch for who has submitted
// a message (RFC 4954, section 5). What an authenticated client says is passed on
// as it came. Over its own connection the next hop knows who it is, and decides;
// a login that XCLIENT has told is vouched for by the trusted proxy.
func withoutSubmitter(params []string) []string {
	isAuth := func(p string) bool {
		keyword, _, _ := strings.Cut(p, "=")
		return strings.EqualFold(keyword, "AUTH")
	}
	i := slices.IndexFunc(params, isAuth)
	if i < 0 {
		return params
	}
	params = slices.Clone(params)
	params[i] = "AUTH=<>"
	return params
}
