package store

import (
	"errors"

	"spamgate/blocklist"
	"spamgate/blocklist/sender"
	"spamgate/internal/suffix"
)

// ErrAsked says that a list is asked over DNS: it has no files, versions or entries here. Use
// errors.Is.
var ErrAsked = errors.New("it is asked over DNS, and has no files, entries or versions here")

// asked returns what is asked of a list in DNS. Names that an entry of the list could not have
// do not count: public suffixes and, unless the list accepts them, protected names.
func (l *List) asked(protected *Protected) *blocklist.Asked {
	if l.OnProtected == AcceptProtected {
		protected = nil
	}
	kind, prefix := sender.KindDomain, ""
	if l.Exact {
		kind, prefix = sender.KindAtDomain, "@"
	}
	return &blocklist.Asked{
		Exact:  l.Exact,
		Source: "dns:" + l.Zone,
		Omits: func(domain string) bool {
			name, _ := protected.covered(kind, prefix+domain)
			return name != "" || suffix.IsPublic(domain)
		},
	}
}
