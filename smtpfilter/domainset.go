package smtpfilter

import "strings"

// domainSet is a set of domains in normal form. A domain with a dot in front means
// itself and its subdomains.
type domainSet struct {
	names map[string]struct{}
	of    []string // what the set was made of
}

func newDomainSet(domains []string) *domainSet {
	s := &domainSet{names: make(map[string]struct{}, len(domains)), of: domains}
	for _, d := range domains {
		s.names[d] = struct{}{}
	}
	return s
}

// has reports whether a domain in normal form is in the set. The work is one lookup
// for each label.
func (s *domainSet) has(domain string) bool {
	if _, ok := s.names[domain]; ok {
		return true
	}
	if _, ok := s.names["."+domain]; ok {
		return true
	}
	for i := strings.IndexByte(domain, '.'); i >= 0; {
		if _, ok := s.names[domain[i:]]; ok {
			return true
		}
		next := strings.IndexByte(domain[i+1:], '.')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	return false
}

// madeOf reports whether the set was made of these domains, of the same slice.
func (s *domainSet) madeOf(domains []string) bool {
	return len(s.of) == len(domains) && (len(domains) == 0 || &s.of[0] == &domains[0])
}

// index returns the recipient domains as a set: the one that indexed has made, or
// else a new one.
func (p *Policy) index() *domainSet {
	if p.domains != nil && p.domains.madeOf(p.RecipientDomains) {
		return p.domains
	}
	return newDomainSet(p.RecipientDomains)
}

// indexed returns the policy with its recipient domains as a set, so that no message
// has to go through all of them.
func (p Policy) indexed() Policy {
	p.domains = newDomainSet(p.RecipientDomains)
	return p
}
