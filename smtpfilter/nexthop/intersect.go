package nexthop

import (
	"slices"
	"strconv"
	"strings"

	"spamgate/smtpfilter/wire"
)

// Extensions are the keywords that all members offer which are up, or all members
// where none is: whatever is promised to a client, the member that gets its
// message can do. SIZE has the smallest limit, AUTH the mechanisms that all have
// in common. Any other keyword is left out unless all give it the same
// parameters.
func (g *Group) Extensions() wire.Extensions {
	asked := g.members
	if up := slices.DeleteFunc(slices.Clone(asked), func(m *member) bool { return !m.up() }); len(up) > 0 {
		asked = up
	}
	common := asked[0].Extensions()
	for _, m := range asked[1:] {
		common = intersect(common, m.Extensions())
	}
	return common
}

// intersect makes a new set of what both offer.
func intersect(a, b wire.Extensions) wire.Extensions {
	common := make(wire.Extensions)
	for keyword, params := range a {
		others, ok := b[keyword]
		switch {
		case !ok:
		case keyword == "SIZE":
			common[keyword] = smallerSize(params, others)
		case keyword == "AUTH":
			if mechanisms := both(params, others); len(mechanisms) > 0 {
				common[keyword] = mechanisms
			}
		case slices.EqualFunc(params, others, strings.EqualFold):
			common[keyword] = params
		}
	}
	return common
}

// smallerSize gives the parameters of SIZE with the smaller limit. A limit of 0,
// or none, is no limit (RFC 1870, section 4).
func smallerSize(a, b []string) []string {
	if limit := sizeLimit(b); limit > 0 && (sizeLimit(a) == 0 || limit < sizeLimit(a)) {
		return b
	}
	return a
}

// sizeLimit is 0 where no limit is given, or none that can be read.
func sizeLimit(params []string) uint64 {
	if len(params) == 0 {
		return 0
	}
	limit, _ := strconv.ParseUint(params[0], 10, 64)
	return limit
}

// both gives the words of a that are also in b, without regard to case.
func both(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(word string) bool {
		return !slices.ContainsFunc(b, func(other string) bool { return strings.EqualFold(word, other) })
	})
}
