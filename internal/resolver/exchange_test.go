package resolver

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// TestQueries: no two queries have the same id, case or port.
func TestQueries(t *testing.T) {
	const n = 50
	ids, names := map[uint16]bool{}, map[string]bool{}
	for range n {
		q, err := newQuery("mail.a.example", dns.TypeA, true)
		if err != nil {
			t.Fatal(err)
		}
		m := new(dns.Msg)
		if err := m.Unpack(q.wire); err != nil || m.Question[0].Name != q.name || m.Id != q.id || !m.RecursionDesired {
			t.Fatalf("%v: %v", m, err)
		}
		if opt := m.IsEdns0(); opt == nil || opt.UDPSize() != udpSize || opt.Do() {
			t.Errorf("EDNS: %v", opt)
		}
		if !strings.EqualFold(q.name, "mail.a.example.") {
			t.Fatalf("asks for %s", q.name)
		}
		ids[q.id], names[q.name] = true, true
	}
	if len(ids) < n-2 || len(names) < n-2 {
		t.Errorf("%d ids and %d spellings in %d queries", len(ids), len(names), n)
	}
}

// FuzzParse reads whatever a server sends.
func FuzzParse(f *testing.F) {
	q, err := newQuery("a.example", dns.TypeA, false)
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{"A 192.0.2.1", "TXT \"a \\007 \\\"b\\\"\"", "CNAME a.example.", "CNAME b.example."} {
		m := new(dns.Msg)
		m.Unpack(q.wire)
		m.Response = true
		rr, err := dns.NewRR(q.name + " 60 IN " + text)
		if err != nil {
			f.Fatal(err)
		}
		m.Answer = []dns.RR{rr, rr}
		wire, _ := m.Pack()
		f.Add(wire[2:])
		f.Add(wire[2 : len(wire)-3])
	}
	f.Fuzz(func(t *testing.T, rest []byte) {
		wire := append(binary.BigEndian.AppendUint16(nil, q.id), rest...)
		m, err := q.parse(wire, true)
		if err != nil {
			return
		}
		for rr := range Records(m, "a.example") {
			if rr.Header().Class != dns.ClassINET {
				t.Errorf("%v", rr)
			}
		}
		if m.Truncated || len(m.Question) > 0 && !strings.EqualFold(m.Question[0].Name, "a.example.") {
			t.Errorf("%v", m)
		}
	})
}
