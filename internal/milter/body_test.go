package milter

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"

	"spamgate/blocklist"
	"spamgate/blocklist/judge"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/internal/door"
	"spamgate/internal/door/doortest"
	"spamgate/internal/proof"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/clientname/dnstest"
)

// provingSettings are settings with an allow list that wants proofs.
func provingSettings(t testing.TB) door.Settings {
	t.Helper()
	c, err := doortest.New(
		doortest.List{Name: "partners", Entries: "partner.example\n", List: store.List{Type: blocklist.Allow, ProvenBy: verdict.DKIM}},
		doortest.List{Name: "blocked", Entries: "partner.example\n", List: store.List{Action: verdict.Reject}},
	)
	if err != nil {
		t.Fatal(err)
	}
	zone := dnstest.NewMemory(t)
	zone.AddText("ed._domainkey.partner.example", "v=DKIM1; k=ed25519; p="+base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey)), 60)
	proofs := proof.New(proof.Config{Dial: zone.Dial, Log: slog.New(slog.DiscardHandler)})
	c.Prover = func() judge.Prover { return proofs.Message() }
	policy := smtpfilter.Policy{HeaderFields: []string{"From"}}
	if err := policy.Validate(); err != nil {
		t.Fatal(err)
	}
	return door.Settings{Checker: c, Policy: policy, Signatures: proofs}
}

var key = ed25519.NewKeyFromSeed([]byte("the seed of the key of all tests"))

// signedFields returns the steps that send a header with a signature of partner.example, in
// which every space counts.
func signedFields(t testing.TB, body string) (steps []string) {
	t.Helper()
	var signed strings.Builder
	header := "From:a@partner.example\r\nSubject:\r\n folded, \r\n\tand again\r\n"
	if err := dkim.Sign(&signed, strings.NewReader(header+"\r\n"+body), &dkim.SignOptions{Domain: "partner.example", Selector: "ed", Signer: key}); err != nil {
		t.Fatal(err)
	}
	section, _, _ := strings.Cut(signed.String(), "\r\n\r\n")
	section = strings.NewReplacer("\r\n ", `\n `, "\r\n\t", "\\n\t").Replace(section)
	for line := range strings.SplitSeq(section, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		steps = append(steps, "> L "+name+"|"+value+"|")
	}
	return steps
}

const notProven = "< y 550 5.7.1 <a@partner.example> refused: list blocked; id ID|"

// TestBody: the body comes if a list wants a signature, whole or in parts, as far as a verdict
// depends on it.
func TestBody(t *testing.T) {
	envelope := []string{"> M <a@partner.example>|", "< c", "> R <you@example.net>|", "< c"}
	unsigned := []string{"> L From| a@partner.example|"}
	signed := signedFields(t, "one\r\ntwo\r\n")
	for _, c := range []struct {
		what  string
		steps [][]string
	}{
		{"in parts", [][]string{envelope, signed, {`> B one\r\nt`, "< c", `> B wo\r`, "< c", `> B \n`, "< c", "> E", "< c"}}},
		{"with the end", [][]string{envelope, signed, {`> B one\r\n`, "< c", `> E two\r\n`, "< c"}}},
		{"changed", [][]string{envelope, signed, {`> B one\r\nTwo\r\n`, "< c", "> E", notProven}}},
		{"truncated", [][]string{envelope, signed, {`> B one\r\n`, "< c", "> E", notProven}}},
		{"none", [][]string{envelope, signed, {"> E", notProven}}},
		{"no signature", [][]string{envelope, unsigned, {`> B one\r\n`, "< s", "> E", notProven}}},
		{"two messages", [][]string{envelope, signed, {`> B one`, "< c", "> A"}, envelope, signed, {`> B one\r\ntwo\r\n`, "< c", "> E", "< c"}}},
		{"a body before MAIL", [][]string{{`> B one`, "< end"}}},
	} {
		t.Run(c.what, func(t *testing.T) {
			g := newTestServer(t)
			g.Apply(provingSettings(t))
			conn := g.dial(t)
			play(t, conn, []string{"> O 6 1ff 1fffff", "< O 6 109 1037c0 0:j 2:i {auth_authen} 3:i {rcpt_addr} 4:i 5:i 6:i",
				"> C client.example 4 25 192.0.2.1", "> H client.example|"})
			for _, steps := range c.steps {
				play(t, conn, steps)
			}
		})
	}
}

// TestBodyAfterReload: the settings can change between the negotiation and a message. Where no
// body comes, a signature that may be valid counts as valid.
func TestBodyAfterReload(t *testing.T) {
	signed := signedFields(t, "one\r\n")
	g := newTestServer(t)
	c := g.dial(t)
	play(t, c, begin) // with noBody
	g.Apply(provingSettings(t))
	message := append([]string{"> M <a@partner.example>|", "< c", "> R <you@example.net>|", "< c"}, signed...)
	play(t, c, append(message, "> E", "< c"))
	play(t, c, []string{"> M <a@partner.example>|", "< c", "> R <you@example.net>|", "< c", "> L From| a@partner.example|", "> E", notProven})

	c = g.dial(t)
	play(t, c, []string{"> O 6 1ff 1fffff", "< O 6 109 1037c0 0:j 2:i {auth_authen} 3:i {rcpt_addr} 4:i 5:i 6:i"})
	g.Apply(settings(t))
	play(t, c, []string{"> C client.example 4 25 192.0.2.1", "> H client.example|",
		"> M <a@clean.example>|", "< c", "> R <you@example.net>|", "< c", "> L From| a@clean.example|", "> B x", "< s", "> E", "< c"})
}

// TestOldBody: before version 6 each part of the body is answered, also if nothing depends on it.
// A field loses the space after the colon there, and the milter gives it back.
func TestOldBody(t *testing.T) {
	g := newTestServer(t)
	g.Apply(provingSettings(t))
	c := g.dial(t)
	play(t, c, []string{"> O 2 3f 7f", "< O 2 9 40", "> C client.example 4 25 192.0.2.1", "< c", "> H client.example|", "< c",
		"> M <a@partner.example>|", "< c", "> R <you@example.net>|", "< c", "> L From|a@partner.example|", "< c"})
	for range 3 {
		play(t, c, []string{`> B x\r\n`, "< c"})
	}
	play(t, c, []string{"> E", notProven})
}

// TestManyClasses: a message has thousands of recipients, each with a class of its own or not.
func TestManyClasses(t *testing.T) {
	const many = 10_000
	var entries strings.Builder
	for i := range many / 20 {
		fmt.Fprintf(&entries, "r%d@example.net news.example\n", i)
	}
	checker, err := doortest.New(doortest.List{Name: "own", Entries: entries.String(), List: store.List{Action: verdict.Reject, PerRecipient: true}})
	if err != nil {
		t.Fatal(err)
	}
	g := newTestServer(t)
	s := settings(t)
	s.Checker = checker
	g.Apply(s)
	c := g.dial(t)
	if err := c.SetDeadline(time.Now().Add(2 * deadline)); err != nil {
		t.Fatal(err)
	}
	play(t, c, append(begin, "> M <a@clean.example>|", "< c"))
	go func() { // the answers come meanwhile
		var packets []byte
		for i := range many {
			packets = appendPacket(packets, cmdRcpt, fmt.Sprintf("<r%d@example.net>", i), "\x00")
		}
		if _, err := c.Write(packets); err != nil {
			t.Error(err)
		}
	}()
	for range many {
		if got := receive(t, c); got != "c" {
			t.Fatal(got)
		}
	}
	play(t, c, []string{"> L From| a@news.example|", "> E",
		"< y 550 5.7.1 <a@news.example> refused: list own; id ID; not for <r0@example.net> and 499 more, send it to the others alone|"})
}
