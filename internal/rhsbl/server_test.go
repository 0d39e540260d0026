package rhsbl

import (
	"crypto/md5"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"spamgate/blocklist"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
)

// block returns a block list that rejects.
func block(name, lines string) testList {
	return testList{store.List{Name: name, Action: verdict.Reject, PublicReason: true}, lines}
}

// said returns an answer as a short text: the code, then A and TXT, or SOA if it has that.
func said(r *dns.Msg) string {
	parts := []string{dns.RcodeToString[r.Rcode]}
	for _, rr := range append(r.Answer, r.Ns...) {
		switch rr := rr.(type) {
		case *dns.A:
			parts = append(parts, rr.A.String())
		case *dns.TXT:
			parts = append(parts, fmt.Sprintf("%q", strings.Join(rr.Txt, "|")))
		default:
			parts = append(parts, dns.TypeToString[rr.Header().Rrtype])
		}
	}
	return strings.Join(parts, " ")
}

// TestAnswers asks for names of both zones. Hash marks have the sum made of what follows.
func TestAnswers(t *testing.T) {
	lists, _ := openStore(t,
		block("blocked", "spam.example  # bulk mail ## found by me\n@exact.example\n*.wild.example\nuser@one.example # phishing\n!ham.spam.example\n!@half.spam.example\n!press@one.example\ndeep.er.still.example\n"),
		testList{store.List{Name: "later", Action: verdict.Defer}, "slow.example # hidden\n"},
		testList{store.List{Name: "marked", Action: verdict.Tag, PublicReason: true}, "bulk.example # caf\u00e9\n"},
		testList{store.List{Name: "dropped", Action: verdict.Discard}, "gone.example\n"},
		testList{store.List{Name: "tried", Action: verdict.Monitor}, "tried.example\n"},
		testList{store.List{Name: "allowed", Type: blocklist.Allow}, "friend@one.example\ngood.slow.example\nx.four.example\n"},
		testList{store.List{Name: "from", Action: verdict.Reject, Stages: verdict.Header}, "from.example\n"},
	)
	s := newServer(t, lists, zonesOf())
	for _, tt := range []struct{ name, qtype, want string }{
		{"spam.example.bl.test", "A", "NOERROR 127.0.0.2"},
		{"SpAm.Example.BL.test", "A", "NOERROR 127.0.0.2"},
		{"a.b.spam.example.bl.test", "A", "NOERROR 127.0.0.2"},
		{"spam.example.bl.test", "TXT", `NOERROR "list blocked (bulk mail)"`},
		{"spam.example.bl.test", "ANY", "NOERROR 127.0.0.2"},
		{"spam.example.bl.test", "AAAA", "NOERROR SOA"},
		{"ham.spam.example.bl.test", "A", "NOERROR SOA"},
		{"half.spam.example.bl.test", "A", "NOERROR SOA"},
		{"x.half.spam.example.bl.test", "A", "NOERROR 127.0.0.2"},
		{"exact.example.bl.test", "A", "NOERROR 127.0.0.2"},
		{"x.exact.example.bl.test", "A", "NXDOMAIN SOA"},
		{"wild.example.bl.test", "A", "NOERROR SOA"},
		{"x.wild.example.bl.test", "A", "NOERROR 127.0.0.2"},
		{"one.example.bl.test", "A", "NXDOMAIN SOA"},
		{"er.still.example.bl.test", "A", "NOERROR SOA"},
		{"still.example.bl.test", "TXT", "NOERROR SOA"},
		{"example.bl.test", "A", "NOERROR SOA"},
		{"clean.example.bl.test", "A", "NXDOMAIN SOA"},
		{"slow.example.bl.test", "A", "NOERROR 127.0.0.3"},
		{"slow.example.bl.test", "TXT", `NOERROR "list later"`},
		{"good.slow.example.bl.test", "A", "NOERROR SOA"},
		{"bulk.example.bl.test", "A", "NOERROR 127.0.0.4"},
		{"bulk.example.bl.test", "TXT", `NOERROR "list marked (caf?)"`},
		{"gone.example.bl.test", "A", "NOERROR 127.0.0.5"},
		{"tried.example.bl.test", "A", "NOERROR SOA"},
		{"from.example.bl.test", "A", "NXDOMAIN SOA"},

		{"TEST.bl.test", "A", "NOERROR 127.0.0.2"},
		{"test.bl.test", "TXT", `NOERROR "this is the test point of the zone: it is always listed"`},
		{"INVALID.bl.test", "A", "NXDOMAIN SOA"},
		{"bl.test", "A", "NOERROR SOA"},
		{"BL.test", "SOA", "NOERROR SOA"},
		{"bl.test", "NS", "NOERROR NS"},
		{"bl.test", "ANY", "NOERROR SOA"},
		{`spam\.example.bl.test`, "A", "NXDOMAIN SOA"},
		{`x.spam.example\000.bl.test`, "A", "NXDOMAIN SOA"},
		{`a\.bl.test`, "A", "REFUSED"},
		{"[192.0.2.1].bl.test", "A", "NXDOMAIN SOA"},
		{"xbl.test", "A", "REFUSED"},
		{"test", "A", "REFUSED"},
		{".", "NS", "REFUSED"},
		{"spam.example", "A", "REFUSED"},
		{"bl.test", "AXFR", "REFUSED"},

		{"#user@one.example.hash.test", "A", "NOERROR 127.0.0.2"},
		{"#user@one.example.hash.test", "TXT", `NOERROR "list blocked (phishing)"`},
		{"#press@one.example.hash.test", "A", "NXDOMAIN SOA"},
		{"#friend@one.example.hash.test", "A", "NOERROR 127.0.1.1"},
		{"#friend@one.example.hash.test", "TXT", `NOERROR "list allowed allows this address"`},
		{"four.example.bl.test", "A", "NXDOMAIN SOA"}, // an allow list lists no names
		{"#any@spam.example.hash.test", "A", "NXDOMAIN SOA"},
		{"test.hash.test", "A", "NOERROR 127.0.0.2"},
		{"invalid.hash.test", "A", "NXDOMAIN SOA"},
		{"hash.test", "SOA", "NOERROR SOA"},
		{"spam.example.hash.test", "A", "NXDOMAIN SOA"},
	} {
		for _, name := range namesOf(tt.name) {
			if got := said(s.ask(t, newQuestion(name, dns.StringToType[tt.qtype]))); got != tt.want {
				t.Errorf("%s %s: %s, want %s", name, tt.qtype, got, tt.want)
			}
		}
	}
}

// namesOf returns the names for an address after a hash mark in the hashed zone.
func namesOf(name string) []string {
	address, ok := strings.CutPrefix(name, "#")
	if !ok {
		return []string{name}
	}
	address, ok = strings.CutSuffix(address, ".hash.test")
	if !ok {
		panic(name)
	}
	s, m := sha1.Sum([]byte(address)), md5.Sum([]byte(address))
	var names []string
	for _, sum := range [][]byte{s[:], m[:]} {
		names = append(names, hex.EncodeToString(sum)+".hash.test", strings.ToUpper(hex.EncodeToString(sum))+".hash.test", formatBase32(sum)+".hash.test")
	}
	return names
}

// formatBase32 writes a sum as rspamd does.
func formatBase32(sum []byte) string {
	var text []byte
	bits, have := uint(0), 0
	for _, b := range sum {
		bits |= uint(b) << have
		for have += 8; have >= 5; have -= 5 {
			text = append(text, base32[bits&31])
			bits >>= 5
		}
	}
	if have > 0 {
		text = append(text, base32[bits])
	}
	return string(text)
}

// TestBase32 compares with what rspamd prints for an address.
func TestBase32(t *testing.T) {
	s, m := sha1.Sum([]byte("user@example.com")), md5.Sum([]byte("user@example.com"))
	for text, want := range map[string][]byte{
		"d5jbbmj1buezw5ac83sy8ya3ph6rdt96": s[:],
		"ipnp3nuyf6aqecq7mmwhtzfjxf":       m[:],
		hex.EncodeToString(s[:]):           s[:],
		hex.EncodeToString(m[:]):           m[:],
	} {
		if got, ok := parseSum(text); !ok || string(got) != string(want) {
			t.Errorf("%s: %x, want %x", text, got, want)
		}
	}
	for _, text := range []string{"", "x", "d5jbbmj1buezw5ac83sy8ya3ph6rdt9l", "ipnp3nuyf6aqecq7mmwhtzfjx9", strings.Repeat("0g", 20)} {
		if got, ok := parseSum(text); ok {
			t.Errorf("%s: %x", text, got)
		}
	}
}
