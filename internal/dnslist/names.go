package dnslist

import (
	"strings"

	"spamgate/internal/resolver"
	"spamgate/internal/suffix"
)

const (
	// MaxNames is the number of different names that one message asks for. A name counts
	// once, whatever the number of lists that are asked for it.
	MaxNames = 20

	maxName = resolver.MaxName

	// maxZone leaves room for a domain of half the length.
	maxZone = 126
)

// isName reports whether a text in lower case is a name that can be asked: labels of
// letters, digits, hyphens and underscores. DNS can carry other bytes, but no domain of
// a sender that gets mail has them.
func isName(s string) bool {
	label := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '.':
			if label == 0 {
				return false
			}
			label = 0
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
			if label++; label > 63 {
				return false
			}
		default:
			return false
		}
	}
	return label > 0 && len(s) <= maxName
}

// isDomain reports whether a domain of a sender may be asked. Lists of domains have
// neither single labels nor addresses; some answer addresses with an error code.
func isDomain(s string) bool {
	if !isName(s) {
		return false
	}
	last := s[strings.LastIndexByte(s, '.')+1:]
	return len(last) < len(s) && strings.Trim(last, "0123456789") != ""
}

// appendNames appends the domain and those of its parents that lie below a public
// suffix, the most specific first.
func appendNames(names []string, domain string) []string {
	names = append(names, domain)
	for {
		_, parent, ok := strings.Cut(domain, ".")
		if !ok || suffix.IsPublic(parent) {
			return names
		}
		names = append(names, parent)
		domain = parent
	}
}
