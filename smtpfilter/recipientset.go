package smtpfilter

import (
	"hash/maphash"
	"iter"
	"slices"
	"strings"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// DomainSet is an immutable set of recipient domains; see Policy.Domains. One with a leading dot
// stands for itself and its subdomains.
type DomainSet struct {
	set   map[string]struct{}
	names []string
}

// NewDomainSet returns a set of domains, which are in the normal form of Policy.Validate.
func NewDomainSet(domains []string) *DomainSet {
	s := &DomainSet{make(map[string]struct{}, len(domains)), slices.Clone(domains)}
	for _, d := range domains {
		s.set[d] = struct{}{}
	}
	return s
}

// Len returns the number of domains.
func (s *DomainSet) Len() int { return len(s.set) }

// Names returns the domains. The caller must not change them.
func (s *DomainSet) Names() []string { return s.names }

// has reports whether the set contains a domain in normal form. It makes one lookup for
// each label.
func (s *DomainSet) has(domain string) bool {
	if _, ok := s.set[domain]; ok {
		return true
	}
	if _, ok := s.set["."+domain]; ok {
		return true
	}
	for i := range len(domain) {
		if domain[i] != '.' {
			continue
		}
		if _, ok := s.set[domain[i:]]; ok {
			return true
		}
	}
	return false
}

// AddressSet is an immutable set of recipients; see Policy.ValidRecipients. It takes 8 bytes
// for an address, since it keeps 64-bit hashes with a random key. Of n addresses in the
// set, one that is not seems to be in it with the probability n/2^64.
type AddressSet struct {
	seed   maphash.Seed
	hashes []uint64 // sorted, each once
}

// NewAddressSet returns a set of addresses, "user@domain" or "@domain" for all of a domain,
// in the normal form of Policy.ExemptRecipients after Policy.Validate.
func NewAddressSet(addresses iter.Seq[string]) *AddressSet {
	s := &AddressSet{seed: maphash.MakeSeed()}
	for a := range addresses {
		s.hashes = append(s.hashes, maphash.String(s.seed, a))
	}
	slices.Sort(s.hashes)
	s.hashes = slices.Clip(slices.Compact(s.hashes))
	return s
}

// Len returns the number of addresses.
func (s *AddressSet) Len() int { return len(s.hashes) }

// Has reports whether the set has a recipient: its address, its address without a tag
// ("user" of "user+tag"), or all addresses of its domain.
func (s *AddressSet) Has(rcpt verdict.Recipient) bool {
	if s.hasParts(rcpt.Local, rcpt.Domain) || s.hasParts("", rcpt.Domain) {
		return true
	}
	user, _, tagged := strings.Cut(rcpt.Local, "+")
	return tagged && user != "" && s.hasParts(user, rcpt.Domain)
}

// hasParts reports whether the set has an address.
func (s *AddressSet) hasParts(local, domain string) bool {
	var h maphash.Hash
	h.SetSeed(s.seed)
	h.WriteString(local)
	h.WriteByte('@')
	h.WriteString(domain)
	return s.has(h.Sum64())
}

// has reports whether the set has a hash.
func (s *AddressSet) has(hash uint64) bool {
	_, ok := slices.BinarySearch(s.hashes, hash)
	return ok
}

// KnowsRecipient reports whether the address of a recipient may exist, as far as
// ValidRecipients tells. postmaster always does (RFC 5321, section 4.5.1).
func (p *Policy) KnowsRecipient(rcpt verdict.Recipient) bool {
	if p.ValidRecipients == nil || rcpt.Local == "postmaster" || rcpt.Domain == "" {
		return true
	}
	return p.ValidRecipients().Has(rcpt)
}

// limitsDomains reports whether mail is accepted for some domains only.
func (p *Policy) limitsDomains() bool { return p.Domains != nil || len(p.RecipientDomains) > 0 }

// domainSet returns the present recipient domains. Validate has made the set, so that no message
// has to go through all of them.
func (p *Policy) domainSet() *DomainSet {
	switch {
	case p.Domains != nil:
		return p.Domains()
	case p.domains != nil:
		return p.domains
	}
	return NewDomainSet(p.RecipientDomains)
}

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
