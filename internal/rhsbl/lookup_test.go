package rhsbl

import (
	"crypto/sha1"
	"encoding/hex"
	"testing"

	"github.com/miekg/dns"

	"spamgate/blocklist"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
)

// TestLookup compares what is said of a server's answers with its answers.
func TestLookup(t *testing.T) {
	lists, _ := openStore(t,
		testList{store.List{Name: "allowed", Type: blocklist.Allow}, "friend@spam.example\nok.defer.example\n"},
		testList{store.List{Name: "blocked", PublicReason: true, Action: verdict.Reject}, "spam.example # reported ## by us\n!good@spam.example\nuser@plain.example # spammer\nlocal@\n*.below.example\n"},
		testList{store.List{Name: "later", Action: verdict.Defer}, "defer.example # slow\nuser@[192.0.2.1]\n<>\n"},
		testList{store.List{Name: "headers", Action: verdict.Tag, Stages: verdict.Header}, "header.example\n"},
	)
	settings := zonesOf()
	settings.Contact = "ask postmaster"
	for _, only := range [][]string{nil, {"headers", "blocked"}} {
		settings.Lists = only
		s := newServer(t, lists, settings)
		listed := 0
		for address, names := range map[string]int{
			"a@spam.example": 2, "friend@spam.example": 2, "good@spam.example": 2, "User@Plain.Example": 2, "other@plain.example": 2,
			"a@defer.example": 2, "a@ok.defer.example": 2, "a@below.example": 2, "a@x.below.example": 2, "a@header.example": 2,
			"local@other.example": 2, "user@[192.0.2.1]": 1, "<>": 0,
		} {
			records, err := Lookup(lists.Set(), settings, address)
			if err != nil || len(records) != names {
				t.Fatalf("%s: %v, %v, want %d names", address, records, err, names)
			}
			for _, r := range records {
				if got := askedRecord(s, r.Name); got != r {
					t.Errorf("lists %q, %s: the server answers %+v, and Lookup says %+v", only, address, got, r)
				}
				if r.A != "" {
					listed++
				}
			}
		}
		if listed < 3 {
			t.Errorf("lists %q: only %d names are listed", only, listed)
		}
	}
	if _, err := Lookup(lists.Set(), settings, "not an address"); err == nil {
		t.Error("no error for what is not an address")
	}
}

// askedRecord returns what a server answers.
func askedRecord(s *Server, name string) Record {
	r := Record{Name: name}
	for _, qtype := range []uint16{dns.TypeA, dns.TypeTXT} {
		m := new(dns.Msg).SetQuestion(dns.Fqdn(name), qtype)
		s.fill(s.state.Load(), m)
		for _, rr := range m.Answer {
			switch rr := rr.(type) {
			case *dns.A:
				r.A = rr.A.String()
			case *dns.TXT:
				r.TXT += rr.Txt[0]
			}
		}
	}
	return r
}

// TestAction: the action of a record is the one that its code was made of.
func TestAction(t *testing.T) {
	for want := verdict.Accept; want < verdict.Monitor; want++ {
		r := found{code: want.Code()}.record("x.example")
		if got := r.Action(); got != want {
			t.Errorf("%v: %v, want %v", r, got, want)
		}
	}
}

// TestStrictest: an allowed address counts more than the listed domain.
func TestStrictest(t *testing.T) {
	lists, _ := openStore(t,
		testList{store.List{Name: "allowed", Type: blocklist.Allow}, "friend@spam.example\n"},
		testList{store.List{Name: "blocked", Action: verdict.Reject}, "spam.example\n"})
	for address, want := range map[string]verdict.Action{"friend@spam.example": verdict.Accept, "a@spam.example": verdict.Reject, "a@b.example": verdict.Accept} {
		records, err := Lookup(lists.Set(), zonesOf(), address)
		if got := Strictest(records); err != nil || got != want {
			t.Errorf("%s: %v, %v of %+v, want %v", address, got, err, records, want)
		}
	}
}

// TestWithoutMessage: there is no message that proves a sender, and no recipient. An allow entry
// that wants a proof spares a name, and entries for recipients list none.
func TestWithoutMessage(t *testing.T) {
	lists, _ := openStore(t,
		testList{store.List{Name: "partners", Type: blocklist.Allow, ProvenBy: verdict.SPF | verdict.DKIM}, "partner.example\nboss@spam.example\n"},
		testList{store.List{Name: "signed", Type: blocklist.Allow, Override: true, ProvenBy: verdict.DKIM}, "signed.example\n"},
		testList{store.List{Name: "blocked", Action: verdict.Reject}, "partner.example\nsigned.example\nspam.example\nboss@spam.example\na@mail.partner.example\n"},
		testList{store.List{Name: "own", Action: verdict.Reject, PerRecipient: true}, "ann@own.example news.example\n@own.example a@pest.example\n@own.example deep.private.example\n"},
		testList{store.List{Name: "headers", Action: verdict.Tag, Stages: verdict.Header}, "partner.example\nheader.example\n"},
	)
	settings := zonesOf()
	for _, only := range [][]string{nil, {"partners", "signed", "blocked", "own", "headers"}} {
		settings.Lists = only
		s := newServer(t, lists, settings)
		for address, want := range map[string][2]string{ // of the domain, and of the address
			"a@partner.example":      {"", ""},
			"a@mail.partner.example": {"", "127.0.0.2"}, // its own entry is more specific than partner.example
			"a@signed.example":       {"", ""},
			"a@spam.example":         {"127.0.0.2", ""},
			"boss@spam.example":      {"127.0.0.2", ""},
			"a@news.example":         {"", ""},
			"a@pest.example":         {"", ""},
			"ann@own.example":        {"", ""},
		} {
			records, err := Lookup(lists.Set(), settings, address)
			if err != nil || len(records) != 2 {
				t.Fatalf("%s: %v, %v", address, records, err)
			}
			for i, r := range records {
				if r.A != want[i] || askedRecord(s, r.Name) != r {
					t.Errorf("lists %q, %s: %+v, and the server %+v; want %q", only, address, r, askedRecord(s, r.Name), want[i])
				}
			}
		}
		if r := s.ask(t, newQuestion("private.example.bl.test.", dns.TypeA)); r.Rcode != dns.RcodeNameError {
			t.Errorf("lists %q: an answer shows that a recipient has an entry below private.example:\n%s", only, r)
		}
		for _, key := range []string{"@own.example\ta@pest.example", "ann@own.example\tnews.example", "ann@own.example\t"} {
			sum := sha1.Sum([]byte(key))
			if f := s.find(s.state.Load(), s.state.Load().HashedZone, hex.EncodeToString(sum[:])); f != (found{}) {
				t.Errorf("the hash of the entry %q: %+v", key, f)
			}
		}
	}
}
