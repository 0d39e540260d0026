package nexthop

import "slices"

// WantsName reports whether t, or a member of it, is likely to want the name of a
// client that brings mail, as far as is known by now.
func WantsName(t Target) bool {
	switch t := t.(type) {
	case *SMTP:
		offers := t.Extensions()
		return t.usesXCLIENT() && offersAttribute(offers["XCLIENT"], "NAME") ||
			t.config.Identity != IdentityNone && offersAttribute(offers["XFORWARD"], "NAME")
	case *Group:
		return slices.ContainsFunc(t.members, func(m *member) bool { return WantsName(m.Target) })
	}
	return false
}
