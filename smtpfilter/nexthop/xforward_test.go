package nexthop

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestXforward(t *testing.T) {
	all := strings.Fields("NAME ADDR PORT PROTO HELO IDENT SOURCE")
	v6 := netip.MustParseAddrPort("[2001:db8::7%eth0]:25")
	mapped := netip.MustParseAddrPort("[::ffff:192.0.2.9]:1")
	for _, c := range []struct {
		name    string
		offered []string
		env     Envelope
		want    []string
	}{
		{"nothing offered", nil, Envelope{Client: testClient}, nil},
		{"none of ours offered", []string{"COLOUR"}, Envelope{Client: testClient}, nil},
		{"all", all, Envelope{Client: testClient, ID: "x1"}, []string{
			"XFORWARD NAME=mx.example.org PROTO=ESMTP HELO=mx.example.org IDENT=x1", "XFORWARD ADDR=192.0.2.7 PORT=4711"}},
		{"nothing known", all, Envelope{}, []string{
			"XFORWARD NAME=[UNAVAILABLE] PROTO=[UNAVAILABLE] HELO=[UNAVAILABLE] IDENT=[UNAVAILABLE]",
			"XFORWARD ADDR=[UNAVAILABLE] PORT=[UNAVAILABLE]"}},
		{"too long for one command", all, Envelope{Client: Client{Name: strings.Repeat("n", 255), Helo: strings.Repeat("h", 255)}, ID: "x2"}, []string{
			"XFORWARD NAME=" + strings.Repeat("n", 255) + " PROTO=[UNAVAILABLE]",
			"XFORWARD HELO=" + strings.Repeat("h", 255) + " IDENT=x2",
			"XFORWARD ADDR=[UNAVAILABLE] PORT=[UNAVAILABLE]"}},
		{"IPv6, zone dropped", []string{"addr"}, Envelope{Client: Client{Addr: v6}}, []string{"XFORWARD ADDR=IPV6:2001:db8::7"}},
		{"IPv4 in IPv6", []string{"ADDR"}, Envelope{Client: Client{Addr: mapped}}, []string{"XFORWARD ADDR=192.0.2.9"}},
		{"xtext", []string{"HELO"}, Envelope{Client: Client{Helo: "a+b=c"}}, []string{"XFORWARD HELO=a+2Bb+3Dc"}},
		{"forbidden bytes", []string{"HELO"}, Envelope{Client: Client{Helo: "a b\r\nRSET\x00<ü>"}}, []string{"XFORWARD HELO=a?b??RSET????"}},
		{"address literal", []string{"HELO"}, Envelope{Client: Client{Helo: "[192.0.2.1]"}}, []string{"XFORWARD HELO=[192.0.2.1]"}},
		{"longest", []string{"HELO"}, Envelope{Client: Client{Helo: strings.Repeat("x", 255)}}, []string{"XFORWARD HELO=" + strings.Repeat("x", 255)}},
		{"too long", []string{"HELO"}, Envelope{Client: Client{Helo: strings.Repeat("x", 256)}}, []string{"XFORWARD HELO=[UNAVAILABLE]"}},
		{"too long encoded", []string{"HELO"}, Envelope{Client: Client{Helo: strings.Repeat("=", 200)}}, []string{"XFORWARD HELO=[UNAVAILABLE]"}},
	} {
		got := appendClient(nil, c.offered, &c.env.Client, attribute{"IDENT", xforwardValue(c.env.ID)})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
		for _, command := range got {
			if len(command)+2 > 512 {
				t.Errorf("%s: %d bytes", c.name, len(command)+2)
			}
		}
	}
}

// plainXforwardValue is the plain twin of xforwardValue for short values.
func plainXforwardValue(v string) string {
	var b strings.Builder
	for _, r := range v {
		switch {
		case r <= ' ' || r > '~' || strings.ContainsRune(`<>()\";@`, r):
			b.WriteByte('?')
		case r == '+' || r == '=':
			fmt.Fprintf(&b, "+%02X", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func TestXforwardValue(t *testing.T) {
	for a := range 256 {
		for b := range 256 {
			v := string([]byte{byte(a), byte(b)})
			if got, want := xforwardValue(v), plainXforwardValue(v); got != want {
				t.Fatalf("%q: %q, want %q", v, got, want)
			}
		}
	}
}

// BenchmarkXforward makes the commands for one message.
func BenchmarkXforward(b *testing.B) {
	all := strings.Fields("NAME ADDR PORT PROTO HELO IDENT SOURCE")
	b.ReportAllocs()
	for b.Loop() {
		appendClient(nil, all, &testClient, attribute{"IDENT", xforwardValue("KYJARXTCGHLW")})
	}
}
