package dnstest

import (
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// Reverse returns the name of an address's PTR record.
func Reverse(addr netip.Addr) string {
	if addr.Is4() {
		name := "in-addr.arpa."
		for _, b := range addr.AsSlice() {
			name = fmt.Sprintf("%d.%s", b, name)
		}
		return name
	}
	name := "ip6.arpa."
	for _, b := range addr.AsSlice() {
		name = fmt.Sprintf("%x.%x.%s", b&0xf, b>>4, name)
	}
	return name
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
		if r.Header.Type == q.Type {
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
