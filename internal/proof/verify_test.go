package proof

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/emersion/go-msgauth/dkim"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/clientname/dnstest"
)

const notValid = "not proven: dkim: the signature of partner.example is not valid: "

// TestWeakSignatures verifies signatures that are valid in themselves, and still do not count.
func TestWeakSignatures(t *testing.T) {
	const proven = "proven: dkim: a valid signature of partner.example"
	for _, c := range []struct {
		name   string
		change func(*dkim.SignOptions)
		record func(string) string
		want   string
	}{
		{"as usual", nil, nil, proven},
		{"simple", func(o *dkim.SignOptions) { o.HeaderCanonicalization, o.BodyCanonicalization = "simple", "simple" }, nil, proven},
		{"in upper case", func(o *dkim.SignOptions) { o.Domain = "PARTNER.example" }, nil, proven},
		{"a fitting i=", func(o *dkim.SignOptions) { o.Identifier = "ann@mail.partner.example" }, nil, proven},
		{"i= of another domain", func(o *dkim.SignOptions) { o.Identifier = "ann@attacker.example" }, nil, notValid + "domain mismatch"},
		{"x= in an hour", func(o *dkim.SignOptions) { o.Expiration = time.Now().Add(time.Hour) }, nil, proven},
		{"x= an hour ago", func(o *dkim.SignOptions) { o.Expiration = time.Now().Add(-time.Hour) }, nil, notValid + "signature has expired"},
		{"without From", func(o *dkim.SignOptions) { o.HeaderKeys = []string{"From", "To"} }, nil, proven},
		{"a key for tests", nil, func(s string) string { return s + "; t=s: y" }, notValid + "no key for signature: its owner only tests it (t=y)"},
		{"a key with another flag", nil, func(s string) string { return s + "; t=s:yes" }, proven},
		{"a revoked key", nil, func(string) string { return "v=DKIM1; p=" }, notValid + "key revoked"},
		{"a key for another service", nil, func(s string) string { return s + "; s=tlsrpt" }, notValid + "inappropriate service"},
		{"a key for another hash", nil, func(s string) string { return s + "; h=sha1" }, notValid + "inappropriate hash algorithm"},
		{"another key", nil, func(string) string { return record(ed25519Key()) }, notValid + "inappropriate key algorithm"},
		{"no key", nil, func(string) string { return "hello" }, notValid + "key record error: dkim: malformed header params"},
	} {
		w := newWorld(t)
		text := record(rsaKey())
		if c.record != nil {
			text = c.record(text)
		}
		w.AddText("s._domainkey.partner.example", text, 60)
		change := c.change
		if change == nil {
			change = func(*dkim.SignOptions) {}
		}
		if _, got := w.verifyAll(signed(t, letter, "partner.example", rsaKey(), change), "ann@partner.example", 100); say(got) != c.want {
			t.Errorf("%s: %s, want %s", c.name, say(got), c.want)
		}
	}
}

// TestShortKey signs with a key of 512 bits, which anybody can break. Go itself refuses to
// make or to use one, unless it is told to.
func TestShortKey(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	key, err := rsa.GenerateKey(rand.Reader, 512)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.publish("partner.example", key)
	_, got := w.verifyAll(signed(t, letter, "partner.example", key), "ann@partner.example", 100)
	if want := notValid + "key is too short: want 1024 bits, has 512 bits"; say(got) != want {
		t.Errorf("%s, want %s", say(got), want)
	}
}

// TestForeignSignature: a valid signature of an attacker proves neither the reverse-path nor a
// From of the partner, whatever it claims to be.
func TestForeignSignature(t *testing.T) {
	w := newWorld(t)
	w.publish("attacker.example", rsaKey())
	w.publish("partner.example.attacker.example", rsaKey())
	w.AddText("partner.example._domainkey.attacker.example", record(rsaKey()), 60)
	for _, change := range []func(*dkim.SignOptions){
		func(o *dkim.SignOptions) { o.Domain = "attacker.example" },
		func(o *dkim.SignOptions) {
			o.Domain = "attacker.example"
			o.Identifier = "ann@partner.example.attacker.example"
		},
		func(o *dkim.SignOptions) { o.Domain = "partner.example.attacker.example" },
		func(o *dkim.SignOptions) { o.Domain, o.Selector = "attacker.example", "partner.example" },
	} {
		message := signed(t, letter, "attacker.example", rsaKey(), change)
		m, p := w.verifyAll(message, "ann@partner.example", 100)
		if p.State != verdict.NotProven {
			t.Errorf("From: %s", say(p))
		}
		m.ReversePath, m.BodyKnown = "ann@partner.example", true
		m.Signatures = w.signaturesOf(message, "attacker.example", "partner.example.attacker.example")
		if m.Signatures[0].State != verdict.Proven {
			t.Errorf("the attacker's signature is not valid: %+v", m.Signatures)
		}
		for _, stage := range []verdict.Stage{verdict.Envelope, verdict.Header} {
			if p := w.proofs.Message().Prove(t.Context(), m, stage, address(t, "ann@partner.example"), verdict.SPF|verdict.DKIM); p.State != verdict.NotProven {
				t.Errorf("%v: %s", stage, say(p))
			}
		}
	}
}

// signaturesOf verifies the signatures of a message by some domains.
func (w *world) signaturesOf(message string, domains ...string) []verdict.Signature {
	v := w.proofs.Verify(w.Context(), domains)
	v.Write([]byte(message))
	return v.Finish()
}

// TestManySignatures verifies the first of them, and asks only for those that are named.
func TestManySignatures(t *testing.T) {
	w := newWorld(t)
	message := letter
	var want []string
	for i := range 8 {
		domain := fmt.Sprintf("d%d.example", i)
		w.publish(domain, rsaKey())
		message = signed(t, message, domain, rsaKey())
		if i >= 3 { // above those signed first
			want = append([]string{domain}, want...)
		}
	}
	got := w.signaturesOf(message, "d0.example", "d4.example", "d7.example")
	for i, s := range got {
		named := s.Domain == "d4.example" || s.Domain == "d7.example"
		if s.Domain != want[i] || (s.State == verdict.Proven) != named {
			t.Errorf("signature %d is %+v, want one of %s", i, s, want[i])
		}
	}
	if len(got) != verdict.MaxSignatures || len(w.Asked()) != 2 {
		t.Errorf("%d signatures, asked %q", len(got), w.Asked())
	}
}

// TestSelectors: a selector or domain with odd characters is never asked for.
func TestSelectors(t *testing.T) {
	w := newWorld(t)
	for _, tags := range []string{
		`s=a b\.c; d=partner.example`, "s=; d=partner.example", "s=..; d=partner.example", "s=ä; d=partner.example",
		"s=" + strings.Repeat("x", 64) + "; d=partner.example", "s=" + strings.Repeat("x.", 120) + "; d=partner.example",
		"s=a; d=b._domainkey.partner.example", `s=a._domainkey.attacker.example\; d=partner.example`,
		"s=a'b; d=partner.example",
	} {
		w.signaturesOf("DKIM-Signature: v=1; a=rsa-sha256; b=x; bh=x; h=from; "+tags+"\r\nFrom: ann@partner.example\r\n\r\n", "partner.example", "b._domainkey.partner.example")
	}
	if asked := w.Asked(); len(asked) > 0 {
		t.Errorf("asked %q", asked)
	}
}

// TestExpensiveMessages has messages that would cost the library the square of their length.
func TestExpensiveMessages(t *testing.T) {
	const tags = "DKIM-Signature: v=1; a=rsa-sha256; d=partner.example; s=s; b=AAAA; bh=AAAA; h=from"
	const blank = notValid + "the body has too many blank lines to verify"
	signedBody := func(body string) string {
		return signed(t, "From: ann@partner.example\r\n\r\n"+body, "partner.example", rsaKey())
	}
	lines := func(n int, line string) string { return strings.Repeat(line, n) }
	for _, c := range []struct{ name, message, want string }{
		{"names", tags + lines(100_000, ":x") + "\r\nFrom: ann@partner.example\r\n" + lines(100, "X:\r\n") + "\r\nx\r\n",
			notValid + "the header has too many lines to verify"},
		{"space for many names", tags + lines(10_000, ":x") + "\r\nFrom: ann@partner.example\r\nX: " + lines(100_000, " ") + "\r\n\r\nx\r\n",
			notValid + "the header has too many lines to verify"},
		{"lines of a field", tags + "\r\nFrom: ann@partner.example\r\nSubject: x\r\n" + lines(100_000, " x\r\n") + "\r\nx\r\n",
			notValid + "the header has too many lines to verify"},
		{"a long header", tags + "\r\nFrom: ann@partner.example\r\nSubject: x\r\n" + lines(maxHeader, "x") + "\r\n\r\nx\r\n",
			notValid + "the header is too long to verify"},
		{"a header without end", tags + "\r\nFrom: ann@partner.example\r\n", notValid + "the header does not end"},
		{"blank lines", signedBody("x\r\n" + lines(1<<20, "\r\n") + "x\r\n"), blank},
		{"blank lines at the end", signedBody("x\r\n" + lines(1<<20, "\r\n")), blank},
		{"lines of space", signedBody("x\r\n" + lines(1<<20, " \r\n") + "x\r\n"), blank},
		{"some blank lines", signedBody("x\r\n" + lines(4000, "\r\n") + "x\r\n" + lines(4000, "\r\n")),
			"proven: dkim: a valid signature of partner.example"},
		{"no body", signedBody(""), "proven: dkim: a valid signature of partner.example"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.publish("partner.example", rsaKey())
			for _, size := range []int{4096, len(c.message)} {
				if _, got := w.verifyAll(c.message, "ann@partner.example", size); say(got) != c.want {
					t.Errorf("in pieces of %d: %s, want %s", size, say(got), c.want)
				}
			}
		})
	}
}

// TestEnds ends verifications wherever a message may end. In the bubble of the test no
// goroutine may remain.
func TestEnds(t *testing.T) {
	message := signed(t, letter, "partner.example", rsaKey()) + strings.Repeat("x\r\n", 100_000)
	for _, end := range []string{"abort", "finish"} {
		for _, stalled := range []bool{false, true} {
			for _, pos := range []int{0, 1, 100, strings.Index(message, "\r\n\r\n"), strings.Index(message, "\r\n\r\n") + 4, len(letter), 200_000} {
				inBubble(t, func(w *world) {
					w.publish("partner.example", rsaKey())
					if stalled {
						w.Behave(dnstest.Behavior{Lie: silent})
					}
					before := bubbled()
					v := w.proofs.Verify(w.Context(), []string{"partner.example"})
					v.Write([]byte(message[:pos]))
					if end == "abort" {
						v.Abort()
					} else {
						for _, s := range v.Finish() {
							if s.State == verdict.ProofPending || s.State == verdict.Proven {
								t.Errorf("at %d: %+v", pos, s)
							}
						}
					}
					v.Abort()
					v.Write([]byte("after its end\r\n\r\n"))
					synctest.Wait()
					if n := bubbled(); n > before+1 { // the server answers the last question
						t.Errorf("%s at %d: %d goroutines remain", end, pos, n-before)
					}
				})
			}
		}
	}
}

// bubbled returns how many other goroutines there are in bubbles. runtime.NumGoroutine counts those
// of the whole process, and for a moment one that synctest.Wait no longer waits for.
func bubbled() int {
	stacks := make([]byte, 1<<20)
	return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte(", synctest bubble "))
}

// TestWaits: a message of up to 64 KiB does not wait for a key before its end, and none
// longer than keysTimeout.
func TestWaits(t *testing.T) {
	small := signed(t, letter+strings.Repeat("x\r\n", 10_000), "partner.example", rsaKey())
	large := signed(t, letter+strings.Repeat("x\r\n", 1_000_000), "partner.example", rsaKey())
	inBubble(t, func(w *world) {
		w.publish("partner.example", rsaKey())
		w.Behave(dnstest.Behavior{Delay: 2 * time.Second})
		v := w.proofs.Verify(w.Context(), []string{"partner.example"})
		w.took(0, func() { v.Write([]byte(small)) })
		w.took(2*time.Second, func() { v.Finish() })
		v = w.proofs.Verify(w.Context(), []string{"partner.example"})
		w.took(2*time.Second, func() { v.Write([]byte(large)) })
		w.took(0, func() {
			if s := v.Finish(); s[0].State != verdict.Proven {
				t.Errorf("%+v", s)
			}
		})
		w.Behave(dnstest.Behavior{Lie: silent})
		v = w.proofs.Verify(w.Context(), []string{"partner.example"})
		w.took(keysTimeout, func() { v.Write([]byte(large)) })
		w.took(0, func() { v.Finish() })
	})
}

// BenchmarkVerify measures a message with a signature that is verified, its key included.
func BenchmarkVerify(b *testing.B) {
	for name, key := range map[string]crypto.Signer{"rsa 2048": must(rsa.GenerateKey(rand.Reader, 2048)), "ed25519": ed25519Key()} {
		for _, size := range []int{4 << 10, 1 << 20} {
			message := []byte(signed(b, letter+strings.Repeat(strings.Repeat("x", 76)+"\r\n", size/78), "partner.example", key))
			b.Run(fmt.Sprintf("%s/%dKiB", name, size>>10), func(b *testing.B) {
				w := newWorld(b)
				w.publish("partner.example", key)
				b.SetBytes(int64(len(message)))
				b.ReportAllocs()
				for b.Loop() {
					v := w.proofs.Verify(b.Context(), []string{"partner.example"})
					for rest := message; len(rest) > 0; {
						n, _ := v.Write(rest[:min(len(rest), 32<<10)])
						rest = rest[n:]
					}
					if s := v.Finish(); s[0].State != verdict.Proven {
						b.Fatalf("%+v", s)
					}
				}
			})
		}
	}
}
