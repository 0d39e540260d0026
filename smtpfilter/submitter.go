package smtpfilter

import (
	"slices"
	"strings"
)

// withoutSubmitter returns the parameters of MAIL with any AUTH replaced by AUTH=<>: a
// client that is not authenticated cannot vouch for the submitter of a message (RFC 4954,
// section 5). The parameter of an authenticated client is passed on unchanged. The next hop
// knows the client from its own connection and decides, or the trusted proxy that sent
// XCLIENT LOGIN vouches for it.
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
