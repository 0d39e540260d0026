package proof

import (
	"crypto"
	"net/netip"
	"strings"
	"testing"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/clientname/dnstest"
)

const letter = "From: Ann <ann@partner.example>\r\nTo: bob@example.net\r\nSubject: hello\r\n" +
	"Date: Mon, 23 Nov 2026 06:00:00 +0000\r\nMessage-ID: <1@partner.example>\r\n\r\n" +
	"Hello Bob,\r\n\r\n.\r\nAnn \r\n"

// TestSigned verifies messages with real signatures, as they were signed and changed on
// their way.
func TestSigned(t *testing.T) {
	rsa := func(message, domain string) string { return signed(t, message, domain, rsaKey()) }
	replace := func(message, old, new string) string {
		if !strings.Contains(message, old) {
			t.Fatalf("%q is not in the message", old)
		}
		return strings.Replace(message, old, new, 1)
	}
	whole := rsa(letter, "partner.example")
	for _, c := range []struct{ name, message, want string }{
		{"as it was signed", whole, "proven: dkim: a valid signature of partner.example"},
		{"by a subdomain", rsa(letter, "mail.partner.example"), "proven: dkim: a valid signature of mail.partner.example"},
		{"by another domain", rsa(letter, "attacker.example"), "not proven: dkim: no signature of a domain aligned with partner.example"},
		{"not at all", letter, "not proven: dkim: no signature of a domain aligned with partner.example"},
		{"forwarded", "Received: from a by b; Mon, 23 Nov 2026 06:00:01 +0000\r\nX-Forwarded: yes\r\n" + whole,
			"proven: dkim: a valid signature of partner.example"},
		{"by two domains", rsa(whole, "attacker.example"), "proven: dkim: a valid signature of partner.example"},
		{"a list's subject", replace(whole, "Subject: ", "Subject: [list] "),
			"not proven: dkim: the signature of partner.example is not valid: signature did not verify: crypto/rsa: verification error"},
		{"a list's footer", whole + "-- \r\nlist@example.net\r\n",
			"not proven: dkim: the signature of partner.example is not valid: body hash did not verify"},
		{"truncated", strings.TrimSuffix(whole, "Ann \r\n"),
			"not proven: dkim: the signature of partner.example is not valid: body hash did not verify"},
		{"doubled", whole + whole, "not proven: dkim: the signature of partner.example is not valid: body hash did not verify"},
		{"its header doubled", replace(whole, "\r\n\r\n", "\r\n"+letter[:strings.Index(letter, "\r\n\r\n")]+"\r\n\r\n"),
			"not proven: dkim: the message has 2 From fields"},
		{"another From above", "From: Ann <ceo@partner.example>\r\n" + whole, "not proven: dkim: the message has 2 From fields"},
		{"another From, oddly written", "From\u00a0: <ceo@partner.example>\r\n" + whole, "not proven: dkim: the message has 2 From fields"},
		{"no From", replace(whole, "From: Ann <ann@partner.example>\r\n", ""), "not proven: dkim: the message has 0 From fields"},
		{"l=", replace(whole, "DKIM-Signature: ", "DKIM-Signature: l=1; "),
			"not proven: dkim: the signature of partner.example is not valid: message contains an insecure body length tag"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{1, 7, 1 << 20} {
				w := newWorld(t)
				for _, domain := range []string{"partner.example", "mail.partner.example", "attacker.example"} {
					w.publish(domain, rsaKey())
				}
				_, got := w.verifyAll(c.message, "ann@partner.example", size)
				if say(got) != c.want {
					t.Errorf("in pieces of %d: %s, want %s", size, say(got), c.want)
				}
				for _, q := range w.Asked() {
					if strings.Contains(q, "attacker") {
						t.Errorf("asked %s", q)
					}
				}
			}
		})
	}
}

// TestKeys verifies signatures with several kinds of keys, and names of them.
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		name, domain, address string
		key                   crypto.Signer
		publish               func(w *world, key crypto.Signer)
	}{
		{"rsa", "partner.example", "ann@partner.example", rsaKey(), nil},
		{"ed25519", "partner.example", "ann@partner.example", ed25519Key(), nil},
		{"an alias", "partner.example", "ann@partner.example", rsaKey(), func(w *world, key crypto.Signer) {
			w.AddAlias("s._domainkey.partner.example", "Partner.DKIM.provider.example", 60)
			w.AddText("partner.dkim.provider.example", record(key), 60)
		}},
		{"an IDN", "bücher.example", "ann@BÜCHER.example", rsaKey(), func(w *world, key crypto.Signer) {
			w.publish("xn--bcher-kva.example", key)
		}},
		{"an IDN in ASCII", "xn--bcher-kva.example", "ann@bücher.example", rsaKey(), nil},
	} {
		w := newWorld(t)
		if c.publish == nil {
			w.publish(c.domain, c.key)
		} else {
			c.publish(w, c.key)
		}
		if _, got := w.verifyAll(signed(t, letter, c.domain, c.key), c.address, 100); got.State != verdict.Proven {
			t.Errorf("%s: %s; asked %q", c.name, say(got), w.Asked())
		}
	}
}

// TestSockets asks over real sockets, UDP and TCP.
func TestSockets(t *testing.T) {
	message := signed(t, letter, "partner.example", rsaKey())
	for _, truncate := range []bool{false, true} {
		w := &world{TB: t, Server: dnstest.New(t, "127.0.0.1:0")}
		w.Behave(dnstest.Behavior{Truncate: truncate})
		w.AddText("partner.example", "v=spf1 a -all", 60)
		w.AddAddr("partner.example", "198.51.100.1", 60)
		w.publish("partner.example", rsaKey())
		w.proofs = New(Config{Resolvers: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:9")}})
		w.proofs.Apply([]netip.AddrPort{netip.MustParseAddrPort(w.Addr())})
		if got := w.spf("198.51.100.1"); got.State != verdict.Proven {
			t.Error(say(got))
		}
		if _, got := w.verifyAll(message, "ann@partner.example", 100); got.State != verdict.Proven {
			t.Error(say(got))
		}
		if tcp := strings.Contains(strings.Join(w.Asked(), " "), " tcp"); tcp != truncate {
			t.Errorf("asked %q", w.Asked())
		}
	}
}
