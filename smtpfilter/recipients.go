package smtpfilter

import (
	"hash/maphash"
	"iter"
	"slices"
	"strings"

	"spamgate/blocklist/verdict"
)

// DomainSet is an immutable set of recipient domains; see Policy.Domains.
type DomainSet struct {
	set   domainSet
	names []string
}

// NewDomainSet returns a set of domains, which are in the normal form of Policy.Validate.
func NewDomainSet(domains []string) *DomainSet {
	names := slices.Clone(domains)
	return &DomainSet{newDomainSet(names), names}
}

// Len returns the number of domains.
func (s *DomainSet) Len() int { return len(s.set) }

// Names returns the domains. The caller must not change them.
func (s *DomainSet) Names() []string { return s.names }

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

// recipientDomains returns the present recipient domains.
func (p *Policy) recipientDomains() []string {
	if p.Domains != nil {
		return p.Domains().names
	}
	return p.RecipientDomains
}
