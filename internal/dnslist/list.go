package dnslist

import (
	"fmt"
	"strings"
	"time"
)

const (
	// DefaultTimeout is how long a message waits for the answers of one list.
	DefaultTimeout = 2 * time.Second

	// DefaultTest is the test point that RFC 5782, section 5, gives to lists of domains.
	DefaultTest = "TEST"

	// invalid is the name that no list may have (RFC 5782, section 5).
	invalid = "INVALID"
)

// List is a list in DNS. Its zero Codes, Timeout and Test are the defaults.
type List struct {
	Name string // as Message.Ask and Status have it
	Zone string // "dbl.example.org"

	Codes   Codes         // the answers that count
	Exact   bool          // asks for the domain alone, not for its parents
	Timeout time.Duration // how long a message waits for all answers of the list
	Defer   bool          // Unknown defers the mail, see Result.Defer

	// Test is the list's test point: a name that it must have. "dbltest.com". A list
	// without it is switched off. If Test is empty, the list is asked for DefaultTest,
	// and only a warning follows if it is missing: not all publishers have it.
	Test string
}

// CheckZone returns an error if a text cannot be the zone of a list.
func CheckZone(zone string) error {
	if zone != strings.Trim(zone, ".") {
		return fmt.Errorf("zone %q: write it without a dot at its beginning and its end", zone)
	}
	if !isDomain(strings.ToLower(zone)) {
		return fmt.Errorf(`zone %q is not the name of a list: use a name such as "dbl.example.org"`, zone)
	}
	if len(zone) > maxZone {
		return fmt.Errorf("zone %q is too long: at most %d bytes leave room for the domains", zone, maxZone)
	}
	return nil
}

// CheckTest returns an error if a text cannot be the test point of a zone.
func CheckTest(test, zone string) error {
	if isName(strings.ToLower(test)) && len(test)+1+len(zone) <= maxName {
		return nil
	}
	return fmt.Errorf("test point %q is not a name: use what the publisher names, such as %q, without the zone", test, DefaultTest)
}
