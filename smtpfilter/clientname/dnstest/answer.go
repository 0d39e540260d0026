package dnstest

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

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

// answers returns what is sent for a query: nothing if it is invalid.
func (s *Server) answers(query []byte, network string) [][]byte {
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
	name := strings.ToLower(q.Name.String())
	s.asked = append(s.asked, fmt.Sprintf("%s %s %s", strings.TrimPrefix(q.Type.String(), "Type"), name, network))
	close(s.changed)
	s.changed = make(chan struct{})
	behavior := s.behavior
	records, exists := s.find(name, q.Type)
	s.mu.Unlock()
	if behavior.Hold != nil {
		select {
		case <-behavior.Hold:
		case <-s.ctx.Done():
			return nil
		}
	}
	if behavior.Delay > 0 {
		select {
		case <-time.After(behavior.Delay):
		case <-s.ctx.Done():
			return nil
		}
	}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: h.ID, Response: true, RecursionAvailable: true, RecursionDesired: h.RecursionDesired},
		Questions: []dnsmessage.Question{q},
	}
	m.Answers = records
	switch {
	case behavior.Fail:
		m.RCode, m.Answers = dnsmessage.RCodeServerFailure, nil
	case behavior.Truncate && network == "udp":
		m.Truncated, m.Answers = true, nil
	case len(m.Answers) == 0:
		if !exists {
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
	if behavior.Lie != nil {
		return behavior.Lie(packed, network)
	}
	return [][]byte{packed}
}

// find returns the records of a name that have a type, and whether the name has any. An
// alias brings the records of its target. The caller must hold mu.
func (s *Server) find(name string, kind dnsmessage.Type) (found []dnsmessage.Resource, exists bool) {
	for range 8 { // bounds a loop of aliases
		records := s.records[name]
		exists = exists || records != nil
		target := ""
		for _, r := range records {
			alias, ok := r.Body.(*dnsmessage.CNAMEResource)
			if ok {
				target = strings.ToLower(alias.CNAME.String())
			}
			if ok || r.Header.Type == kind {
				found = append(found, r)
			}
		}
		if target == "" {
			break
		}
		name = target
	}
	return found, exists
}
