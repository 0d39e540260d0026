package rhsbl

import (
	"context"
	"net"
	"strings"

	"github.com/miekg/dns"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
)

// fill answers the question of r.
func (s *Server) fill(st *state, r *dns.Msg) Outcome {
	q := &r.Question[0]
	zone, name, ok := st.zoneOf(q.Name)
	if !ok || q.Qclass != dns.ClassINET || q.Qtype == dns.TypeAXFR || q.Qtype == dns.TypeIXFR {
		r.Rcode = dns.RcodeRefused
		return Refused
	}
	r.Authoritative = true
	found := s.find(st, zone, name)
	if found.failed {
		r.Authoritative, r.Rcode = false, dns.RcodeServerFailure
		return Failed
	}
	header := dns.RR_Header{Name: q.Name, Rrtype: q.Qtype, Class: dns.ClassINET, Ttl: st.ttl}
	switch {
	case name == "":
		r.Answer = s.apex(st, zone, header)
	case found.code == 0:
		if !found.exists {
			r.Rcode = dns.RcodeNameError
		}
	case q.Qtype == dns.TypeA || q.Qtype == dns.TypeANY: // one set of many will do: RFC 8482, section 4.1
		header.Rrtype = dns.TypeA
		r.Answer = []dns.RR{&dns.A{Hdr: header, A: address(found.code)}}
	case q.Qtype == dns.TypeTXT:
		r.Answer = []dns.RR{&dns.TXT{Hdr: header, Txt: textStrings(found.text)}}
	}
	if len(r.Answer) == 0 {
		r.Ns = []dns.RR{s.soa(st, zone, s.config.Store.Set().Generation())} // RFC 2308, section 3
	}
	if found.code == 0 || found.code == allowed {
		return NotListed
	}
	return Listed
}

// apex returns the records of a zone's own name.
func (s *Server) apex(st *state, zone string, header dns.RR_Header) []dns.RR {
	switch header.Rrtype {
	case dns.TypeSOA, dns.TypeANY:
		soa := s.soa(st, zone, s.config.Store.Set().Generation())
		soa.Hdr.Name = header.Name
		return []dns.RR{soa}
	case dns.TypeNS:
		return []dns.RR{&dns.NS{Hdr: header, Ns: st.Hostname}}
	}
	return nil
}

// zoneOf returns the zone of a name, and what stands before the zone in lower case, without
// the dot between.
func (st *state) zoneOf(name string) (zone, rest string, ok bool) {
	name = strings.ToLower(strings.ReplaceAll(name, `\'`, "'")) // entries have no other character that is escaped
	for _, zone := range [...]string{st.Zone, st.HashedZone} {
		before, found := strings.CutSuffix(name, zone)
		switch {
		case !found || zone == "":
		case before == "":
			return zone, "", true
		case strings.Contains(before, `\`):
			return zone, unlisted, dns.IsSubDomain(zone, name) // the dot may be inside a label
		case before[len(before)-1] == '.':
			return zone, before[:len(before)-1], true
		}
	}
	return "", "", false
}

// unlisted stands for names with characters that no entry has.
const unlisted = `\`

// found is what there is under a name.
type found struct {
	code   uint16 // the last two bytes of A; 0: not listed
	text   string // of TXT
	exists bool   // the name has no records, but there may be names below it
	failed bool   // the lists could not be asked
}

// allowed is the code of an address that an allow list lets in. Patterns for 127.0.0.x, as many
// programs have them for listed names, do not match it.
const allowed = 1<<8 | 1

// address returns the address of a code.
func address(code uint16) net.IP { return net.IP{127, 0, byte(code >> 8), byte(code)} }

// find looks a name up. It is that of a domain or of a hash.
func (s *Server) find(st *state, zone, name string) found {
	switch name {
	case "":
		return found{exists: true}
	case "test": // RFC 5782, section 5
		return found{code: 2, text: "this is the test point of the zone: it is always listed"}
	case "invalid":
		return found{}
	}
	if zone == st.Zone {
		return s.findDomain(st, name)
	}
	return s.findHash(st, name)
}

// findDomain looks up a domain.
func (s *Server) findDomain(st *state, domain string) found {
	if domain == unlisted {
		return found{}
	}
	v, err := st.judge(verdict.ReadDomain, "-@"+domain)
	if err != nil {
		return found{failed: isFailure(err)}
	}
	f := st.found(v)
	if f.code == 0 {
		// Lists that know the name but do not decide may leave names below it listed.
		f.exists = v.Matches != nil || s.mayHaveBelow(st, domain)
	}
	return f
}

// judge asks the lists about a sender.
func (st *state) judge(r verdict.Reading, address string) (verdict.Verdict, error) {
	j := st.checker.Current()
	v, err := ask(j, st.message, verdict.Query{Stage: verdict.Envelope, Address: address, Reading: r})
	if err == nil && st.asksHeader() && v.Action == verdict.Accept && v.Match.IsZero() {
		v, err = ask(j, st.message, verdict.Query{Stage: verdict.Header, Address: address, Reading: r})
	}
	return v, err
}

// ask asks a Judge. A question in DNS proves nothing, so that the verdict is the one with the
// proofs that an allow entry wants: the milder one.
func ask(j verdict.Judge, m *verdict.Message, q verdict.Query) (verdict.Verdict, error) {
	v, err := j.Judge(context.Background(), m, q)
	if v.Proved != nil {
		v = *v.Proved
	}
	return v, err
}

// asksHeader reports whether lists whose only stage is header are asked: those that are named.
func (st *state) asksHeader() bool { return len(st.Lists) > 0 }

// foundAddress returns what there is for the verdict on an address. A program that asks both zones
// lets the address in although its domain is listed, if an allow list does so without a proof.
func (st *state) foundAddress(v verdict.Verdict) found {
	if v.Action == verdict.Accept && !v.Match.IsZero() && v.Match.ProvenBy == 0 {
		return found{code: allowed, text: "list " + smtpfilter.PublicText(v.Match.List) + " allows this address"}
	}
	return st.found(v)
}

// found returns what there is for a verdict.
func (st *state) found(v verdict.Verdict) found {
	if v.Action == verdict.Accept {
		return found{}
	}
	text := "list " + smtpfilter.PublicText(v.Match.List)
	if reason := smtpfilter.PublicText(v.Match.Reason); reason != "" && v.Match.PublicReason {
		text += " (" + reason + ")"
	}
	if st.Contact != "" {
		text += "; " + smtpfilter.PublicText(st.Contact)
	}
	return found{code: v.Action.Code(), text: text}
}

// maxString is the longest string of a TXT record (RFC 1035, section 3.3).
const maxString = 255

// textStrings returns a text as the strings of a TXT record. The record's text has
// backslashes before special characters.
func textStrings(text string) []string {
	var parts []string
	for len(text) > maxString {
		parts, text = append(parts, escapeText(text[:maxString])), text[maxString:]
	}
	return append(parts, escapeText(text))
}

// escapeText writes a backslash as the library wants it.
func escapeText(s string) string { return strings.ReplaceAll(s, `\`, `\\`) }
