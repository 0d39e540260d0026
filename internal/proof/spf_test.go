package proof

import (
	"net/netip"
	"strings"
	"testing"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/clientname/dnstest"
)

// TestSPF asks whether clients may send for reverse-paths.
func TestSPF(t *testing.T) {
	w := newWorld(t)
	w.AddText("partner.example", "v=spf1 ip4:198.51.100.1 ip6:2001:db9::1 mx ~all", 60)
	w.AddMX("partner.example", "mx.partner.example", 60)
	w.AddAddr("mx.partner.example", "198.51.100.2", 60)
	w.AddText("attacker.example", "v=spf1 +all", 60)
	w.AddText("helo.example", "v=spf1 a -all", 60)
	w.AddAddr("helo.example", "198.51.100.3", 60)
	for _, c := range []struct {
		client, path, address string
		stage                 verdict.Stage
		want                  string
	}{
		{"198.51.100.1", "ann@partner.example", "", 0, "proven: spf: pass for 198.51.100.1"},
		{"198.51.100.1", "Ann@Partner.EXAMPLE", "ann@partner.example", 0, "proven: spf: pass for 198.51.100.1"},
		{"198.51.100.2", "ann@partner.example", "", 0, "proven: spf: pass for 198.51.100.2"},
		{"2001:db9::1", "ann@partner.example", "", 0, "proven: spf: pass for 2001:db9::1"},
		{"::ffff:198.51.100.1", "ann@partner.example", "", 0, "proven: spf: pass for 198.51.100.1"},
		{"198.51.100.9", "ann@partner.example", "", 0, "not proven: spf: softfail for 198.51.100.9"},
		{"198.51.100.1", "ann@nothing.example", "", 0, "not proven: spf: none for 198.51.100.1"},
		{"198.51.100.1", "ann@[198.51.100.1]", "", 0, "not proven: spf: an address literal has no record"},
		{"198.51.100.3", "", "", 0, "proven: spf: pass for 198.51.100.3"},
		{"198.51.100.4", "", "", 0, "not proven: spf: fail for 198.51.100.4"},
		// The identity must be the reverse-path.
		{"198.51.100.1", "ann@partner.example", "", verdict.Header, "not proven: spf: it proves only the reverse-path"},
		{"198.51.100.1", "srs0=h=t=partner.example=ann@attacker.example", "ann@partner.example", 0,
			"not proven: spf: it proves only the reverse-path itself"},
		{"198.51.100.1", `"x@attacker.example"@partner.example`, "", 0, "not proven: spf: the local part has an @"},
	} {
		m := &verdict.Message{Client: netip.AddrPortFrom(netip.MustParseAddr(c.client), 25), Helo: "helo.example", ReversePath: c.path}
		if c.address == "" {
			c.address = c.path
		}
		if c.stage == 0 {
			c.stage = verdict.Envelope
		}
		p := w.proofs.Message().Prove(t.Context(), m, c.stage, address(t, c.address), verdict.SPF)
		if say(p) != c.want {
			t.Errorf("%+v: %s", c, say(p))
		}
	}
}

// TestTrueClient: SPF needs the address of the server that sends the message.
func TestTrueClient(t *testing.T) {
	w := newWorld(t)
	w.AddText("partner.example", "v=spf1 +all", 60)
	for _, c := range []struct {
		client       string
		named, proxy bool
		want         string
	}{
		{"198.51.100.1", false, false, ""},
		{"172.32.0.1", false, false, ""},
		{"100.128.0.1", false, false, ""},
		{"2001:db9::1", false, false, ""},
		{"198.51.100.1", false, true, "the client 198.51.100.1 is a trusted proxy that named no client"},
		{"198.51.100.1", true, false, ""},
		{"127.0.0.1", false, false, "the client has the private address 127.0.0.1"},
		{"127.0.0.1", true, false, ""},
		{"::1", false, false, "the client has the private address ::1"},
		{"::ffff:10.0.0.1", false, false, "the client has the private address 10.0.0.1"},
		{"172.16.0.1", false, false, "the client has the private address 172.16.0.1"},
		{"192.168.0.1", false, false, "the client has the private address 192.168.0.1"},
		{"192.168.0.1", true, false, ""},
		{"169.254.0.1", false, false, "the client has the private address 169.254.0.1"},
		{"100.64.0.1", false, false, "the client has the private address 100.64.0.1"},
		{"fe80::1%eth0", false, false, "the client has the private address fe80::1"},
		{"fd00::1", false, false, "the client has the private address fd00::1"},
		{"0.0.0.0", false, false, "the client has the private address 0.0.0.0"},
		{"", false, false, "the client's address is not known"},
		{"", true, false, "the client's address is not known"},
	} {
		m := &verdict.Message{ReversePath: "ann@partner.example", ClientNamed: c.named, ClientIsProxy: c.proxy}
		if c.client != "" {
			m.Client = netip.AddrPortFrom(netip.MustParseAddr(c.client), 25)
		}
		want := "not proven: spf: " + c.want
		if c.want == "" {
			want = "proven: spf: pass for " + m.Client.Addr().Unmap().String()
		}
		p := w.proofs.Message().Prove(t.Context(), m, verdict.Envelope, address(t, "ann@partner.example"), verdict.SPF)
		if say(p) != want {
			t.Errorf("%+v: %s, want %s", c, say(p), want)
		}
	}
	if log := w.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "proxy_protocol, trusted_proxies") {
		t.Errorf("the log has %q, want one warning", log)
	}
}

// TestAskedOnce: SPF is asked for a message once, and not at all if nothing depends on it.
func TestAskedOnce(t *testing.T) {
	w := newWorld(t)
	w.AddText("partner.example", "v=spf1 -all", 60)
	m := read(signed(t, letter, "partner.example", rsaKey()))
	m.ReversePath, m.Client = "ann@partner.example", netip.MustParseAddrPort("198.51.100.1:25")
	proofs, ann := w.proofs.Message(), address(t, "ann@partner.example")
	wantAsked := func(want int) {
		t.Helper()
		if got := len(w.Asked()); got != want {
			t.Errorf("asked %d questions, want %d: %q", got, want, w.Asked())
		}
	}
	m.BodyKnown, m.Signatures[0].State = true, verdict.Proven
	if p := proofs.Prove(t.Context(), m, verdict.Envelope, ann, verdict.SPF|verdict.DKIM); p.State != verdict.Proven {
		t.Error(say(p))
	}
	proofs.Prove(t.Context(), m, verdict.Envelope, address(t, "bob@partner.example"), verdict.SPF)
	proofs.Prove(t.Context(), m, verdict.Header, ann, verdict.SPF)
	wantAsked(0)
	for range 3 {
		if p := proofs.Prove(t.Context(), m, verdict.Envelope, ann, verdict.SPF); say(p) != "not proven: spf: fail for 198.51.100.1" {
			t.Error(say(p))
		}
	}
	wantAsked(1)

	// The message is judged again by others, as at a policy service for each recipient.
	again := w.proofs.Message()
	if p := again.Prove(t.Context(), m, verdict.Envelope, ann, verdict.SPF); say(p) != "not proven: spf: fail for 198.51.100.1" {
		t.Error(say(p))
	}
	wantAsked(1)
	m.Client = netip.MustParseAddrPort("198.51.100.2:25")
	w.proofs.Message().Prove(t.Context(), m, verdict.Envelope, ann, verdict.SPF)
	wantAsked(2)

	// A door without a body takes DKIM for proven, whatever SPF says.
	envelope := verdict.Message{Client: netip.MustParseAddrPort("198.51.100.3:25"), ReversePath: m.ReversePath, EnvelopeOnly: true}
	if p := w.proofs.Message().Prove(t.Context(), &envelope, verdict.Envelope, ann, verdict.SPF|verdict.DKIM); p.State != verdict.ProofPending {
		t.Error(say(p))
	}
	wantAsked(2)
}

// TestBothProofs: any of several proofs will do, and each says why it does not.
func TestBothProofs(t *testing.T) {
	const both = verdict.SPF | verdict.DKIM
	noDKIM := verdict.Signature{Domain: "partner.example", Why: "body hash did not verify"}
	later := verdict.Signature{Domain: "partner.example", State: verdict.ProofPending}
	for _, c := range []struct {
		name   string
		record string // "": no answer
		m      verdict.Message
		want   string
	}{
		{"at MAIL", "v=spf1 -all", verdict.Message{},
			"pending: dkim: the message is not read yet; spf: fail for 198.51.100.1"},
		{"at MAIL, by SPF", "v=spf1 +all", verdict.Message{},
			"proven: dkim: the message is not read yet; spf: pass for 198.51.100.1"},
		{"at the header", "v=spf1 -all", verdict.Message{HeaderKnown: true, FromFields: 1, Signatures: []verdict.Signature{later}},
			"pending: dkim: a signature of partner.example that is verified at the end of the message; spf: fail for 198.51.100.1 [partner.example]"},
		{"at the end", "v=spf1 -all", verdict.Message{HeaderKnown: true, BodyKnown: true, FromFields: 1, Signatures: []verdict.Signature{noDKIM}},
			"not proven: dkim: the signature of partner.example is not valid: body hash did not verify; spf: fail for 198.51.100.1"},
		{"at the end, not verified", "v=spf1 -all", verdict.Message{HeaderKnown: true, BodyKnown: true, FromFields: 1, Signatures: []verdict.Signature{later}},
			"not proven: dkim: the signature of partner.example is not verified; spf: fail for 198.51.100.1"},
		{"without an answer", "", verdict.Message{HeaderKnown: true, BodyKnown: true, FromFields: 1, Signatures: []verdict.Signature{noDKIM}},
			"no answer: dkim: the signature of partner.example is not valid: body hash did not verify; spf: temperror for 198.51.100.1: no answer from the resolver (servfail)"},
	} {
		w := newWorld(t)
		w.AddText("partner.example", c.record, 60)
		w.Behave(dnstest.Behavior{Fail: c.record == ""})
		c.m.ReversePath, c.m.Client = "ann@partner.example", netip.MustParseAddrPort("198.51.100.1:25")
		p := w.proofs.Message().Prove(t.Context(), &c.m, verdict.Envelope, address(t, "ann@partner.example"), both)
		if say(p) != c.want {
			t.Errorf("%s: %s, want %s", c.name, say(p), c.want)
		}
	}
}

// TestNullSender: SPF proves the null sender by the name in HELO, and DKIM cannot.
func TestNullSender(t *testing.T) {
	w := newWorld(t)
	w.AddText("helo.example", "v=spf1 exists:%{l}.%{o}.%{h} -all", 60)
	w.AddAddr("postmaster.helo.example.helo.example", "127.0.0.2", 60)
	for _, c := range []struct{ helo, want string }{
		{"helo.example", "proven: spf: pass for 198.51.100.1"},
		{"", "not proven: spf: the null sender is proven by the name in HELO, and there is none"},
		{"[198.51.100.1]", "not proven: spf: the null sender is proven by the name in HELO, and there is none"},
		{"x@helo.example", "not proven: spf: the null sender is proven by the name in HELO, and there is none"},
		{"a b\\c", "not proven: spf: none for 198.51.100.1"},
		{strings.Repeat("x", 70) + ".example", "not proven: spf: none for 198.51.100.1"},
	} {
		m := &verdict.Message{Client: netip.MustParseAddrPort("198.51.100.1:25"), Helo: c.helo}
		if p := w.proofs.Message().Prove(t.Context(), m, verdict.Envelope, address(t, ""), verdict.SPF); say(p) != c.want {
			t.Errorf("HELO %q: %s, want %s", c.helo, say(p), c.want)
		}
	}
	p := w.proofs.Message().Prove(t.Context(), &verdict.Message{}, verdict.Envelope, address(t, ""), verdict.DKIM)
	if want := "not proven: dkim: the null sender has no domain"; say(p) != want {
		t.Errorf("%s, want %s", say(p), want)
	}
}

// TestIPv6Client asks for both kinds of addresses, which IPv4 clients do not need.
func TestIPv6Client(t *testing.T) {
	w := newWorld(t)
	w.AddText("partner.example", "v=spf1 a:a.example exists:e.example -all", 60)
	w.AddAddr("a.example", "2001:db9::2", 60)
	w.AddAddr("a.example", "198.51.100.2", 60)
	w.AddAddr("e.example", "127.0.0.2", 60)
	for client, most := range map[string]int{"2001:db9::2": 3, "2001:db9::1": 5, "198.51.100.2": 2, "198.51.100.1": 3} {
		before := len(w.Asked())
		if p := w.spf(client); p.State != verdict.Proven {
			t.Errorf("%s: %s", client, say(p))
		}
		if asked := w.Asked()[before:]; len(asked) != most {
			t.Errorf("%s: asked %q", client, asked)
		}
	}
}
