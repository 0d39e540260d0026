package dnslist

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"spamgate/internal/resolver"
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

// failed returns the answer to a question without one. What is our own doing is not cached.
func failed(c Cause) answer {
	if c == CauseBusy || c == CauseStopped {
		return answer{cause: c}
	}
	return answer{cause: c, ttl: failureTTL}
}

// readAnswer reads the reply to a question for the addresses or the text of a name.
func readAnswer(m *dns.Msg, name string, kind uint16) answer {
	a := answer{ttl: maxTTL}
	a.read(m, name, kind)
	if len(a.addrs) == 0 && a.text == "" {
		a.ttl = negativeTTL(m.Ns)
	}
	a.ttl = min(max(a.ttl, minTTL), maxTTL)
	return a
}

// read takes the records of a name.
func (a *answer) read(m *dns.Msg, name string, kind uint16) {
	for rr := range resolver.Records(m, name) {
		switch r := rr.(type) {
		case *dns.CNAME:
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
		a.ttl = min(a.ttl, time.Duration(rr.Header().Ttl)*time.Second)
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
