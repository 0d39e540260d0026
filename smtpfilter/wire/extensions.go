package wire

import "strings"

// Extensions are the keywords of a reply to EHLO, in upper case, with their
// parameters as they were written.
type Extensions map[string][]string

// ParseExtensions reads the lines of a reply to EHLO, the first apart, which is
// the server's name (RFC 5321, section 4.1.1.1). Case does not count.
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
