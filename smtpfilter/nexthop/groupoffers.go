package nexthop

import (
	"slices"
	"strings"

	"spamgate/smtpfilter/wire"
)

// Extensions returns the keywords that all members offer that are up, or all members
// if none is: the member that gets a client's message can do what the client was
// offered. SIZE has the smallest limit, AUTH the common mechanisms. Other keywords
// are left out unless all members give them the same parameters.
func (g *Group) Extensions() wire.Extensions {
	members := g.upOrAll()
	common := members[0].Extensions()
	for _, m := range members[1:] {
		common = intersect(common, m.Extensions())
	}
	return common
}

// intersect returns what both offer.
func intersect(a, b wire.Extensions) wire.Extensions {
	common := make(wire.Extensions)
	for keyword, params := range a {
		others, ok := b[keyword]
		switch {
		case !ok:
		case keyword == "SIZE":
			common[keyword] = params
			if limit := b.Size(); limit > 0 && (a.Size() == 0 || limit < a.Size()) {
				common[keyword] = others
			}
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

// both returns the words of a that are also in b, ignoring case.
func both(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(word string) bool {
		return !slices.ContainsFunc(b, func(other string) bool { return strings.EqualFold(word, other) })
	})
}
