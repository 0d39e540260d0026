// Package sender gives a sender address its normal form and walks the keys
// under which a list may hold it.
//
// The normal form is what both sides of a lookup are reduced to, so that a
// list and a message that spell one address differently still meet:
//
//   - the local part is case-folded (Unicode full case folding), put into NFC,
//     and carries quotes only where its content needs them;
//   - the domain is lower case, its labels in their ASCII form (A-labels),
//     without a trailing dot;
//   - an address literal holds the address as package netip writes it.
//
// Parse is liberal in what real mail carries (a..b@, .a@, a.@, underscores in
// a domain, long local parts), because a sender that cannot be parsed cannot
// be judged either. It refuses what has no single reading.
package sender

import "strings"

// Address is a normalised sender address. Addresses compare with ==: equal
// values are one mailbox in the eyes of a list. The zero Address is the null
// sender.
type Address struct {
	text string // local@domain in normal form; empty for the null sender
	pos  int    // index of the @ between the two
}

// String returns the normal form, "<>" for the null sender. Parsing it gives
// the same Address.
func (a Address) String() string {
	if a.text == "" {
		return "<>"
	}
	return a.text
}

// Local returns the normalised local part, with quotes where it needs them;
// empty for the null sender.
func (a Address) Local() string { return a.text[:a.pos] }

// Domain returns the normalised domain or address literal, such as
// "example.com" or "[192.0.2.1]"; empty for the null sender.
func (a Address) Domain() string {
	if a.text == "" {
		return ""
	}
	return a.text[a.pos+1:]
}

// IsNull reports the null sender, <>, which delivery reports are sent from
// (RFC 5321, section 4.5.5).
func (a Address) IsNull() bool { return a.text == "" }

// IsLiteral reports that the domain is an address literal such as
// "[192.0.2.1]" (RFC 5321, section 4.1.3).
func (a Address) IsLiteral() bool { return strings.HasPrefix(a.Domain(), "[") }
