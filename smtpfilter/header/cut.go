package header

import (
	"bytes"
	"unicode/utf8"
)

// The longest parts of an address that are read, in bytes. A part is cut after everything
// that readers ignore was removed, so that padding does not hide a name.
const (
	maxLocal  = 4096    // from the beginning; no line of a list is longer
	maxDomain = 4 * 255 // from the end; a domain has at most 255 characters of up to four bytes
)

// cutLocal returns the beginning of a local part. It leaves one with routes whole, because
// each name in it may be a host: the readings of its routes are cut.
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

// cutName returns the beginning of a local part, cut between characters.
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
