package smtpfilter

import (
	"hash/maphash"
	"iter"
	"strings"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// RecipientSet is an immutable set of recipients that entries of the grammar of lists name.
// As an AddressSet it takes 8 bytes for an entry, and is as exact.
type RecipientSet struct{ entries, exceptions *AddressSet }

// NewRecipientSet returns a set of entries, which are keys in normal form (package sender):
// "user@example.com", "@example.com", "example.com" with subdomains, "*.example.com",
// "user@". One that begins with "!" is an exception: it leaves out the recipients whom no
// more specific entry names.
func NewRecipientSet(entries iter.Seq[string]) *RecipientSet {
	var exceptions []string
	s := &RecipientSet{}
	s.entries = NewAddressSet(func(yield func(string) bool) {
		for e := range entries {
			if key, ok := strings.CutPrefix(e, "!"); ok {
				exceptions = append(exceptions, key)
			} else if !yield(e) {
				return
			}
		}
	})
	s.exceptions = NewAddressSet(func(yield func(string) bool) {
		for _, key := range exceptions {
			if !yield(key) {
				return
			}
		}
	})
	return s
}

// Len returns the number of entries, exceptions included.
func (s *RecipientSet) Len() int { return s.entries.Len() + s.exceptions.Len() }

// Has reports whether the set has a recipient. The most specific of the entries and
// exceptions that match decides, and of the same one the exception.
func (s *RecipientSet) Has(rcpt verdict.Recipient) bool {
	var buf [640]byte // twice the longest address
	only := sender.AllKinds
	a, err := sender.Parse(rcpt.Path)
	if err != nil {
		// A path without a normal form, such as "postmaster", has a local part alone, or a
		// domain alone.
		path := rcpt.Local + "@invalid"
		only = sender.KindSet(0).With(sender.KindLocal)
		if rcpt.Domain != "" {
			path = "invalid@" + rcpt.Domain
			only = sender.KindSet(0).With(sender.KindAtDomain).With(sender.KindDomain).With(sender.KindSubdomains)
		}
		if a, err = sender.Parse(path); err != nil {
			return false
		}
	}
	w := a.Walk(buf[:0])
	w.Only(only)
	for key, ok := w.Next(); ok; key, ok = w.Next() {
		if s.exceptions.hasKey(key.Text) {
			return false
		}
		if s.entries.hasKey(key.Text) {
			return true
		}
	}
	return false
}

// hasKey reports whether the set has a key.
func (s *AddressSet) hasKey(key []byte) bool {
	return len(s.hashes) > 0 && s.has(maphash.Bytes(s.seed, key))
}
