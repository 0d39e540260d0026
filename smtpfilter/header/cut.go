package header

import (
	"bytes"
	"unicode/utf8"
)

// What is read of the parts of an address. A part is cut only after everything that
// readers drop has been dropped, so that padding does not push a name out of view.
const (
	// maxLocal is how much of a local part is read, in bytes: no line of a list is
	// longer, so that no entry names more of it.
	maxLocal = 4096

	// maxDomain is how much of a domain is read, in bytes, from its end. A domain
	// has at most 255 characters, of up to four bytes.
	maxDomain = 4 * 255
)

// cutLocal returns the beginning of a local part. One with routes in it is left whole,
// because each name in it may be a host: the readings of its routes are cut.
func cutLocal(local []byte) []byte {
	if len(local) <= maxLocal || bytes.ContainsAny(local, routeMarks) {
		return local
	}
	return cutName(local)
}

// routeMarks are the operators of routes: user%host, host!user.
const routeMarks = "%!"

// cutDomain returns the end of a domain.
func cutDomain(domain string) string {
	if len(domain) <= maxDomain {
		return domain
	}
	start := len(domain) - maxDomain
	for start < len(domain) && !utf8.RuneStart(domain[start]) {
		start++
	}
	return domain[start:]
}

// cutName returns the beginning of a local part, between characters.
func cutName(local []byte) []byte {
	if len(local) <= maxLocal {
		return local
	}
	end := maxLocal
	for end > 0 && !utf8.RuneStart(local[end]) {
		end--
	}
	return local[:end]
}
