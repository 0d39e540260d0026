package dnslist

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

const (
	// MaxReason is the longest Result.Reason, in bytes.
	MaxReason = 200

	// maxAddrs bounds the addresses of an answer. No list gives so many.
	maxAddrs = 16

	// minTTL and maxTTL bound how long an answer is cached, whatever its TTL says.
	minTTL = 10 * time.Second
	maxTTL = time.Hour

	// defaultTTL is for a negative answer without an SOA record, which RFC 2308, section
	// 5, forbids to cache. The list would pay for a resolver that omits it.
	defaultTTL = time.Minute

	// failureTTL is how long a failure is cached (RFC 2308, section 7, allows 5 minutes).
	failureTTL = 5 * time.Second
)

// answer is what a resolver says to one question. Nothing changes it afterwards.
type answer struct {
	cause Cause // "" if there is an answer
	addrs []netip.Addr
	text  string
	ttl   time.Duration
}

func failed(c Cause) answer { return answer{cause: c, ttl: failureTTL} }

// readAnswer reads the reply to a question for the addresses or the text of a name. The
// reply belongs to the question: its id and its question were compared.
func readAnswer(m *dns.Msg, name string, kind uint16) answer {
	switch {
	case m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError:
		return failed(CauseServfail)
	case isReferral(m):
		return failed(CauseServfail)
	}
	a := answer{ttl: maxTTL}
	if m.Rcode == dns.RcodeSuccess {
		a.read(m.Answer, name, kind)
	}
	if len(a.addrs) == 0 && a.text == "" {
		a.ttl = negativeTTL(m.Ns)
	}
	a.ttl = min(max(a.ttl, minTTL), maxTTL)
	return a
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

// read takes the records of a name, or of the name that its aliases (CNAME) lead to.
// Records of other names are ignored.
func (a *answer) read(records []dns.RR, name string, kind uint16) {
	owner := dns.Fqdn(name)
	for _, rr := range records { // a resolver sends aliases in their order
		h := rr.Header()
		if h.Class != dns.ClassINET || !strings.EqualFold(h.Name, owner) {
			continue
		}
		switch r := rr.(type) {
		case *dns.CNAME:
			owner = r.Target
		case *dns.A:
			addr, ok := netip.AddrFromSlice(r.A.To4())
			if kind != dns.TypeA || !ok || len(a.addrs) == maxAddrs {
				continue
			}
			a.addrs = append(a.addrs, addr)
		case *dns.TXT:
			if kind != dns.TypeTXT {
				continue
			}
			a.addText(printable(r.Txt))
		default:
			continue
		}
		a.ttl = min(a.ttl, time.Duration(h.Ttl)*time.Second)
	}
	slices.SortFunc(a.addrs, netip.Addr.Compare)
	a.addrs = slices.Compact(a.addrs)
}

// addText appends the text of a record, unless there is the same text already.
func (a *answer) addText(text string) {
	switch {
	case a.text == "":
		a.text = text
	case !strings.Contains(a.text, text):
		a.text += "; " + text
	}
	a.text = a.text[:min(len(a.text), MaxReason)]
}

// printable returns the strings of a TXT record as one text, with "?" for each byte
// that is not printable ASCII. The library has escaped such bytes as \ and their number,
// and quotes and backslashes with a backslash.
func printable(parts []string) string {
	var b strings.Builder
	for _, s := range parts {
		for i := 0; i < len(s) && b.Len() < MaxReason; i++ {
			c := s[i]
			if c == '\\' && i+3 < len(s) && isDigit(s[i+1]) {
				i += 3
				c = '?'
			} else if c == '\\' && i+1 < len(s) {
				i++
				c = s[i]
			}
			if c < ' ' || c > '~' {
				c = '?'
			}
			b.WriteByte(c)
		}
	}
	return strings.TrimSpace(b.String())
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// negativeTTL returns how long it may be cached that there is no record (RFC 2308,
// section 5).
func negativeTTL(authority []dns.RR) time.Duration {
	for _, rr := range authority {
		if soa, ok := rr.(*dns.SOA); ok {
			return time.Duration(min(soa.Hdr.Ttl, soa.Minttl)) * time.Second
		}
	}
	return defaultTTL
}
