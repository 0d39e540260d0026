package wire

import (
	"strconv"
	"strings"
)

// Extensions are the keywords of a reply to EHLO, in upper case, with their
// parameters as received.
type Extensions map[string][]string

// ParseExtensions parses the lines of a reply to EHLO after the first, which is the
// server's name (RFC 5321, section 4.1.1.1).
func ParseExtensions(r Reply) Extensions {
	e := make(Extensions)
	for _, line := range r.Lines[1:] {
		if words := strings.Fields(line); len(words) > 0 {
			e[strings.ToUpper(words[0])] = words[1:]
		}
	}
	return e
}

// Has reports whether a keyword, in upper case, is offered.
func (e Extensions) Has(keyword string) bool {
	_, ok := e[keyword]
	return ok
}

// Size returns the message size that SIZE announces, in bytes (RFC 1870), or 0 for
// no limit.
func (e Extensions) Size() int64 {
	if len(e["SIZE"]) != 1 {
		return 0
	}
	return parseLimit(e["SIZE"][0])
}

// Limit returns a value of LIMITS (RFC 9422, section 4), or 0 for none.
func (e Extensions) Limit(name string) int64 {
	for _, l := range e["LIMITS"] {
		if key, value, _ := strings.Cut(l, "="); strings.EqualFold(key, name) {
			return parseLimit(value)
		}
	}
	return 0
}

// parseLimit parses a number, and returns 0 for anything else.
func parseLimit(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}
