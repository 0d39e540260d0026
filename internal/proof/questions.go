package proof

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"

	"spamgate/internal/resolver"
)

const (
	// maxQuestions bounds the questions of a message. SPF allows 10 terms that ask, but
	// one "mx" or "ptr" asks up to 11 questions (RFC 7208, section 4.6.4).
	maxQuestions = 50

	// maxText is the longest text that is read, in bytes. The key of an RSA signature with
	// 8192 bits has 1,400.
	maxText = 4096
)

var errTooMany = fmt.Errorf("more than %d DNS questions", maxQuestions)

// questions are those that the proofs of a message ask. It implements spf.DNSResolver.
type questions struct {
	resolver *resolver.Resolver
	client   netip.Addr // an IPv4 client needs no IPv6 addresses
	left     int32      // how many may be asked
}

// exhausted reports whether more was to be asked than is allowed.
func (q *questions) exhausted() bool { return atomic.LoadInt32(&q.left) < 0 }

// ask returns the records of a name, at least one. Its errors are what the libraries expect:
// a *net.DNSError, which is temporary or says that there is none.
func (q *questions) ask(ctx context.Context, name string, kind uint16) ([]dns.RR, error) {
	none := &net.DNSError{Err: "no such record", Name: name, IsNotFound: true}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if !isName(name) {
		return nil, none
	}
	if atomic.AddInt32(&q.left, -1) < 0 {
		return nil, &net.DNSError{Err: errTooMany.Error(), Name: name}
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		return nil, errors.New("a question without a deadline")
	}
	m, cause := q.resolver.Ask(ctx, name, kind, time.Until(deadline))
	if cause != "" {
		return nil, &net.DNSError{Err: "no answer from the resolver (" + string(cause) + ")", Name: name, IsTemporary: true}
	}
	var found []dns.RR
	for rr := range resolver.Records(m, name) {
		if rr.Header().Rrtype == kind {
			found = append(found, rr)
		}
	}
	if len(found) == 0 {
		return nil, none
	}
	return found, nil
}

// isName reports whether a text can be asked: labels of printable ASCII, without what DNS
// libraries escape.
func isName(s string) bool {
	label := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '.' && label == 0:
			return false
		case c == '.':
			label = 0
		case c <= ' ' || c > '~' || strings.IndexByte("\\\"'@;()$", c) >= 0:
			return false
		default:
			if label++; label > 63 {
				return false
			}
		}
	}
	return label > 0 && len(s) <= resolver.MaxName
}

// LookupTXT returns the texts of a name, each with its strings joined. Texts longer than
// maxText are omitted.
func (q *questions) LookupTXT(ctx context.Context, name string) ([]string, error) {
	records, err := q.ask(ctx, name, dns.TypeTXT)
	var texts []string
	for _, rr := range records {
		if r, ok := rr.(*dns.TXT); ok {
			if text := joined(r.Txt); len(text) <= maxText {
				texts = append(texts, text)
			}
		}
	}
	return texts, err
}

// joined joins the strings of a text. The library has escaped bytes that are not printable
// as \ and their number, and quotes and backslashes with a backslash.
func joined(parts []string) string {
	var b strings.Builder
	isDigit := func(c byte) bool { return c >= '0' && c <= '9' }
	for _, s := range parts {
		for i := 0; i < len(s); i++ {
			c := s[i]
			if c == '\\' && i+3 < len(s) && isDigit(s[i+1]) {
				c = (s[i+1]-'0')*100 + (s[i+2]-'0')*10 + s[i+3] - '0'
				i += 3
			} else if c == '\\' && i+1 < len(s) {
				i++
				c = s[i]
			}
			b.WriteByte(c)
		}
	}
	return b.String()
}

// LookupMX returns the mail servers of a name.
func (q *questions) LookupMX(ctx context.Context, name string) ([]*net.MX, error) {
	records, err := q.ask(ctx, name, dns.TypeMX)
	var servers []*net.MX
	for _, rr := range records {
		if r, ok := rr.(*dns.MX); ok {
			servers = append(servers, &net.MX{Host: r.Mx, Pref: r.Preference})
		}
	}
	return servers, err
}

// LookupIPAddr returns the addresses of a name. For an IPv6 client both kinds are needed:
// the term "exists" asks for IPv4 (RFC 7208, section 5.7).
func (q *questions) LookupIPAddr(ctx context.Context, name string) ([]net.IPAddr, error) {
	var v4, v6 []dns.RR
	var err4, err6 error
	var asking sync.WaitGroup
	if q.client.Is6() {
		asking.Go(func() { v6, err6 = q.ask(ctx, name, dns.TypeAAAA) })
	}
	v4, err4 = q.ask(ctx, name, dns.TypeA)
	asking.Wait()
	var addrs []net.IPAddr
	for _, rr := range append(v4, v6...) {
		switch r := rr.(type) {
		case *dns.A:
			addrs = append(addrs, net.IPAddr{IP: r.A})
		case *dns.AAAA:
			addrs = append(addrs, net.IPAddr{IP: r.AAAA})
		}
	}
	for _, err := range []error{err4, err6} {
		var failure *net.DNSError
		if errors.As(err, &failure) && (len(addrs) == 0 || !failure.IsNotFound) {
			return nil, err
		}
	}
	return addrs, nil
}

// LookupAddr returns the names of an address.
func (q *questions) LookupAddr(ctx context.Context, addr string) ([]string, error) {
	name, err := dns.ReverseAddr(addr)
	if err != nil {
		return nil, err
	}
	records, err := q.ask(ctx, name, dns.TypePTR)
	var names []string
	for _, rr := range records {
		if r, ok := rr.(*dns.PTR); ok {
			names = append(names, r.Ptr)
		}
	}
	return names, err
}
