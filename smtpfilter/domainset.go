package smtpfilter

// domainSet is a set of domains in normal form. A domain with a leading dot stands for
// itself and its subdomains.
type domainSet map[string]struct{}

func newDomainSet(domains []string) domainSet {
	s := make(domainSet, len(domains))
	for _, d := range domains {
		s[d] = struct{}{}
	}
	return s
}

// has reports whether the set contains a domain in normal form. It makes one lookup for
// each label.
func (s domainSet) has(domain string) bool {
	if _, ok := s[domain]; ok {
		return true
	}
	if _, ok := s["."+domain]; ok {
		return true
	}
	for i := range len(domain) {
		if domain[i] != '.' {
			continue
		}
		if _, ok := s[domain[i:]]; ok {
			return true
		}
	}
	return false
}

// domainSet returns the recipient domains as a set. Validate has made it, so that no
// message has to go through all of them.
func (p *Policy) domainSet() domainSet {
	if p.Domains != nil {
		return p.Domains().set
	}
	if p.domains != nil {
		return p.domains
	}
	return newDomainSet(p.RecipientDomains)
}
