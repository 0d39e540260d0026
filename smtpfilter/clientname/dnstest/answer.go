package dnstest

import (
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// Reverse returns the name of an address's PTR record.
func Reverse(addr netip.Addr) string {
	var b strings.Builder
	bytes := addr.AsSlice()
	for i := len(bytes) - 1; i >= 0; i-- {
		if addr.Is4() {
			fmt.Fprintf(&b, "%d.", bytes[i])
		} else {
			fmt.Fprintf(&b, "%x.%x.", bytes[i]&0xf, bytes[i]>>4)
		}
	}
	if addr.Is4() {
		return b.String() + "in-addr.arpa."
	}
	return b.String() + "ip6.arpa."
}

// answer returns the answer to a query, or nil if the query is invalid.
func (s *Server) answer(query []byte, network string) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	s.mu.Lock()
	s.asked = append(s.asked, fmt.Sprintf("%s %s %s", strings.TrimPrefix(q.Type.String(), "Type"), q.Name, network))
	close(s.changed)
	s.changed = make(chan struct{})
	behavior := s.behavior
	records := s.records[q.Name.String()]
	s.mu.Unlock()
	if behavior.Hold != nil {
		select {
		case <-behavior.Hold:
		case <-s.ctx.Done():
			return nil
		}
	}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: h.ID, Response: true, RecursionAvailable: true, RecursionDesired: h.RecursionDesired},
		Questions: []dnsmessage.Question{q},
	}
	for _, r := range records {
		if typeOf(r.Body) == q.Type {
			m.Answers = append(m.Answers, r)
		}
	}
	switch {
	case behavior.Fail:
		m.RCode, m.Answers = dnsmessage.RCodeServerFailure, nil
	case behavior.Truncate && network == "udp":
		m.Truncated, m.Answers = true, nil
	case len(m.Answers) == 0:
		if records == nil {
			m.RCode = dnsmessage.RCodeNameError
		}
		m.Authorities = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName("example."), Class: dnsmessage.ClassINET, TTL: behavior.Negative},
			Body: &dnsmessage.SOAResource{
				NS: dnsmessage.MustNewName("ns.example."), MBox: dnsmessage.MustNewName("hostmaster.example."), MinTTL: behavior.Negative,
			},
		}}
	}
	packed, err := m.Pack()
	if err != nil {
		return nil
	}
	return packed
}

// typeOf returns the type of a record.
func typeOf(body dnsmessage.ResourceBody) dnsmessage.Type {
	switch body.(type) {
	case *dnsmessage.PTRResource:
		return dnsmessage.TypePTR
	case *dnsmessage.AResource:
		return dnsmessage.TypeA
	}
	return dnsmessage.TypeAAAA
}
