package proof

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-msgauth/dkim"

	"spamgate/blocklist/judge"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/clientname/dnstest"
	"spamgate/smtpfilter/header"
)

var (
	_ judge.Prover                 = (*Message)(nil)
	_ smtpfilter.SignatureVerifier = (*Proofs)(nil)
)

// world is a name server in memory and the Proofs that ask it.
type world struct {
	testing.TB
	*dnstest.Server
	proofs *Proofs
	log    *logText
}

func newWorld(t testing.TB) *world {
	w := &world{TB: t, Server: dnstest.NewMemory(t), log: new(logText)}
	w.proofs = New(Config{
		Resolvers: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.53:53")}, Dial: w.Dial,
		Log: slog.New(slog.NewTextHandler(w.log, nil)),
	})
	return w
}

// logText is the text of a log.
type logText struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// say returns a proof in words: "proven: spf: pass for 192.0.2.1".
func say(p verdict.Proof) string {
	text := p.State.String() + ": " + p.Why
	if len(p.Domains) > 0 {
		text += " [" + strings.Join(p.Domains, " ") + "]"
	}
	return text
}

// address parses an address that a test has.
func address(t testing.TB, s string) sender.Address {
	t.Helper()
	a, err := sender.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Keys that all tests share, because RSA takes its time to make one.
var (
	rsaKey     = sync.OnceValue(func() crypto.Signer { return must(rsa.GenerateKey(rand.Reader, 1024)) })
	ed25519Key = sync.OnceValue(func() crypto.Signer {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return must(key, err)
	})
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// record returns the record that publishes a key.
func record(key crypto.Signer) string {
	if public, ok := key.Public().(ed25519.PublicKey); ok {
		return "v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(public)
	}
	return "v=DKIM1; k=rsa; p=" + base64.StdEncoding.EncodeToString(must(x509.MarshalPKIXPublicKey(key.Public())))
}

// publish publishes a key of a domain, under the selector "s".
func (w *world) publish(domain string, key crypto.Signer) {
	w.AddText("s._domainkey."+domain, record(key), 60)
}

// signed returns a message with a signature of a domain before it.
func signed(t testing.TB, message, domain string, key crypto.Signer, change ...func(*dkim.SignOptions)) string {
	t.Helper()
	o := &dkim.SignOptions{
		Domain: domain, Selector: "s", Signer: key,
		HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed,
	}
	for _, f := range change {
		f(o)
	}
	var b strings.Builder
	if err := dkim.Sign(&b, strings.NewReader(message), o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// read returns what is known of a message at the end of its header.
func read(message string) *verdict.Message {
	section, _, _ := strings.Cut(message, "\r\n\r\n")
	m := &verdict.Message{HeaderKnown: true}
	m.Signatures, m.FromFields = header.Signatures([]byte(section + "\r\n"))
	return m
}

// verifyAll verifies a message as a session does, in pieces of a size, and returns what is
// known of it then.
func (w *world) verifyAll(message, address_ string, size int) (*verdict.Message, verdict.Proof) {
	w.Helper()
	m, proofs := read(message), w.proofs.Message()
	a := address(w, address_)
	p := proofs.Prove(w.Context(), m, verdict.Header, a, verdict.DKIM)
	if p.State != verdict.ProofPending {
		return m, p
	}
	v := w.proofs.Verify(w.Context(), p.Domains)
	for rest := message; rest != ""; {
		n := min(size, len(rest))
		if wrote, err := v.Write([]byte(rest[:n])); wrote != n || err != nil {
			w.Fatalf("wrote %d, %v", wrote, err)
		}
		rest = rest[n:]
	}
	m.Signatures, m.BodyKnown = v.Finish(), true
	return m, proofs.Prove(w.Context(), m, verdict.Header, a, verdict.DKIM)
}
