package resolver

import (
	"iter"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// isAnswer reports whether a reply answers its question, if only by saying that there is no
// such name.
func isAnswer(m *dns.Msg) bool {
	return (m.Rcode == dns.RcodeSuccess || m.Rcode == dns.RcodeNameError) && !isReferral(m)
}

// isReferral reports whether a reply names other servers, which a resolver would have
// asked itself: [resolver] addr is a server of another zone, without recursion.
func isReferral(m *dns.Msg) bool {
	if m.Rcode != dns.RcodeSuccess || len(m.Answer) > 0 || m.Authoritative || m.RecursionAvailable {
		return false
	}
	isNS := func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeNS }
	isSOA := func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeSOA }
	return slices.ContainsFunc(m.Ns, isNS) && !slices.ContainsFunc(m.Ns, isSOA)
}

// Records returns the records of a name, and of the name that its aliases (CNAME) lead to.
// The aliases are among them. Records of other names are ignored, and so are all of a name
// that does not exist.
func Records(m *dns.Msg, name string) iter.Seq[dns.RR] {
	return func(yield func(dns.RR) bool) {
		if m.Rcode != dns.RcodeSuccess {
			return
		}
		owner := dns.Fqdn(name)
		for _, rr := range m.Answer { // a resolver sends aliases in their order
			h := rr.Header()
			if h.Class != dns.ClassINET || !strings.EqualFold(h.Name, owner) {
				continue
			}
			if alias, ok := rr.(*dns.CNAME); ok {
				owner = alias.Target
			}
			if !yield(rr) {
				return
			}
		}
	}
}
