package door

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/emersion/go-msgauth/dkim"

	"spamgate/blocklist"
	"spamgate/blocklist/judge"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/internal/door/doortest"
	"spamgate/internal/proof"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/clientname/dnstest"
)

var key = ed25519.NewKeyFromSeed([]byte("the seed of the key of all tests"))

// newSayingDoor returns a Door whose recipients have a say and whose lists want proofs, its log
// and its counts.
func newSayingDoor(t testing.TB, once bool, mixed smtpfilter.MixedHeaders) (*Door, *bytes.Buffer, *counts) {
	t.Helper()
	c, err := doortest.New(
		doortest.List{Name: "partners", Entries: "partner.example\n", List: store.List{Type: blocklist.Allow, ProvenBy: verdict.SPF | verdict.DKIM}},
		doortest.List{Name: "blocked", Entries: "reject.example\npartner.example\n", List: store.List{Action: verdict.Reject}},
		doortest.Dropped,
		doortest.List{Name: "marked", Entries: "tag.example\n", List: store.List{Action: verdict.Tag}},
		doortest.List{Name: "own", Entries: "ann@example.net news.example\nbob@example.net reject.example\n", List: store.List{Action: verdict.Reject, PerRecipient: true}},
		doortest.List{Name: "wanted", Entries: "ann@example.net a@reject.example\n", List: store.List{Type: blocklist.Allow, PerRecipient: true}},
	)
	if err != nil {
		t.Fatal(err)
	}
	zone := dnstest.NewMemory(t)
	zone.AddText("partner.example", "v=spf1 ip4:192.0.2.1 -all", 60)
	zone.AddText("ed._domainkey.partner.example", "v=DKIM1; k=ed25519; p="+base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey)), 60)
	log, meter := new(bytes.Buffer), new(counts)
	logger := slog.New(slog.NewTextHandler(log, nil))
	proofs := proof.New(proof.Config{Dial: zone.Dial, Log: logger})
	c.Prover = func() judge.Prover { return proofs.Message() }
	is := func(local string) func(verdict.Recipient) bool {
		return func(r verdict.Recipient) bool { return r.Local == local }
	}
	policy := smtpfilter.Policy{HeaderFields: []string{"From"}, MixedHeaders: mixed, Recipients: []smtpfilter.RecipientRule{
		{Name: "open", Match: is("open"), Exempt: true},
		{Name: "mild", Match: is("mild"), MaxAction: verdict.Tag},
		{Name: "watch", Match: is("watch"), Monitor: true},
		{Name: "few", Match: is("few"), Lists: []string{"marked", "own"}},
	}}
	if err := policy.Validate(); err != nil {
		t.Fatal(err)
	}
	return New(Config{Protocol: "milter", Name: "beside", Log: logger, Meter: meter, Once: once},
		Settings{Checker: c, Policy: policy, Signatures: proofs}), log, meter
}

// signature returns a header with a signature of partner.example.
func signature(t testing.TB, header, body string) string {
	t.Helper()
	var signed strings.Builder
	if err := dkim.Sign(&signed, strings.NewReader(header+"\r\n"+body), &dkim.SignOptions{Domain: "partner.example", Selector: "ed", Signer: key}); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(signed.String(), "\r\n"+body)
}

// TestRecipients: what counts for a recipient decides at RCPT, and at the end what counts for all.
func TestRecipients(t *testing.T) {
	const refused = "550 5.7.1 <a@reject.example> refused: list blocked; id ID"
	for _, c := range []struct {
		from   string
		to     string // local parts
		header string // the address in From
		mixed  smtpfilter.MixedHeaders
		want   string // for each recipient, then for the message
	}{
		{"a@reject.example", "you ann mild watch few open", "a@clean.example", 0,
			refused + "|accept|tag listed; list=blocked|accept|accept|accept|tag listed; list=blocked"},
		{"a@news.example", "you ann mild", "a@clean.example", 0,
			"accept|550 5.7.1 <a@news.example> refused: list own; id ID|accept|accept"},
		{"SRS0=hhh=tt=reject.example=a@clean.example", "you mild few", "a@clean.example", 0,
			"550 5.7.1 <a@reject.example> by way of <SRS0=hhh=tt=reject.example=a@clean.example> refused: list blocked; id ID|tag listed; list=blocked|accept|tag listed; list=blocked"},
		{"a@clean.example", "ann", "a@reject.example", 0, "accept|accept"},
		{"a@clean.example", "you ann", "a@reject.example", 0,
			"accept|accept|550 5.7.1 <a@reject.example> refused: list blocked; id ID; not for <you@example.net>, send it to the others alone"},
		{"a@clean.example", "ann you she open", "a@reject.example", 0,
			"accept|accept|accept|accept|550 5.7.1 <a@reject.example> refused: list blocked; id ID; not for <you@example.net> and 1 more, send it to the others alone"},
		{"a@clean.example", "you ann", "a@reject.example", smtpfilter.MixedTag, "accept|accept|tag listed; list=blocked"},
		{"a@clean.example", "you she", "a@reject.example", smtpfilter.MixedTag, "accept|accept|" + refused},
		{"a@clean.example", "mild watch few open", "a@reject.example", 0, "accept|accept|accept|accept|tag listed; list=blocked"},
		{"a@clean.example", "you mild few watch", "a@discard.example", 0, "accept|accept|accept|accept|discard [listed; list=dropped] listed; list=dropped"},
		{"a@discard.example", "mild", "a@tag.example", 0, "tag listed; list=dropped|tag listed; list=dropped listed; list=marked"},
	} {
		d, log, _ := newSayingDoor(t, false, c.mixed)
		m := d.Begin(t.Context(), Envelope{From: c.from})
		var got []string
		for to := range strings.FieldsSeq(c.to) {
			got = append(got, describe(m, m.Recipient(to+"@example.net")))
		}
		m.Header([]byte("From: <"+c.header+">\n"), nil)
		if m.Content() != nil {
			t.Errorf("from %s: the body is asked for", c.from)
		}
		a := m.End()
		if got = append(got, describe(m, a)); a.Reply.IsZero() {
			m.Passed(false)
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("from %s, %s to %s:\n got %s\nwant %s\n%s", c.from, c.header, c.to, strings.Join(got, "|"), c.want, log)
		}
	}
}

// TestProofs: a proof decides when it is known. A door without the body takes the milder verdict.
func TestProofs(t *testing.T) {
	const from, body = "From: <a@partner.example>\r\n", "Hello.\r\n"
	signed := signature(t, from, body)
	refused := "550 5.7.1 <a@partner.example> refused: list blocked; id ID"
	for _, c := range []struct {
		what, client, from, header, body string
		seen                             bool // the body
		want                             string
		logged                           string
	}{
		{"by SPF", "192.0.2.1:25", "a@partner.example", "From: <a@clean.example>\r\n", body, true, "accept|accept", ""},
		{"no proof", "192.0.2.2:25", "a@partner.example", "From: <a@clean.example>\r\n", body, true, "accept|" + refused,
			`proof="dkim: no signature of a domain aligned with partner.example; spf: fail for 192.0.2.2" unproven=partners`},
		{"SPF for this machine", "127.0.0.1:25", "a@partner.example", "From: <a@clean.example>\r\n", body, true, "accept|" + refused, "127.0.0.1"},
		{"a client that is not known", "", "a@partner.example", "From: <a@clean.example>\r\n", body, true, "accept|" + refused, "not known"},
		{"by a signature", "192.0.2.2:25", "a@partner.example", signed, body, true, "accept|accept", ""},
		{"by a signature of LF lines", "192.0.2.2:25", "a@partner.example", strings.ReplaceAll(signed, "\r\n", "\n"), body, true, "accept|accept", ""},
		{"a changed body", "192.0.2.2:25", "a@partner.example", signed, body + "x", true, "accept|" + refused, "body hash"},
		{"no body", "192.0.2.2:25", "a@partner.example", signed, "", false, "accept|accept", ""},
		{"no body and no signature", "192.0.2.2:25", "a@partner.example", from, "", false, "accept|" + refused, ""},
		{"only the header, signed", "192.0.2.2:25", "a@clean.example", signed, body, true, "accept|accept", ""},
		{"only the header, changed", "192.0.2.2:25", "a@clean.example", signed, "x", true, "accept|" + refused, "body hash"},
		{"only the header, SPF", "192.0.2.1:25", "a@clean.example", from, body, true, "accept|" + refused, "unproven=partners"},
	} {
		d, log, _ := newSayingDoor(t, false, 0)
		if !d.ReadsBodies() {
			t.Error("bodies are not needed")
		}
		e := Envelope{From: c.from}
		if c.client != "" {
			e.Client = netip.MustParseAddrPort(c.client)
		}
		m := d.Begin(t.Context(), e)
		got := describe(m, m.Recipient("you@example.net"))
		m.Header([]byte(c.header), nil)
		if c.seen {
			if w := m.Content(); w != nil {
				fmt.Fprint(w, c.body)
			}
		}
		if got += "|" + describe(m, m.End()); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s\n%s", c.what, got, c.want, log)
		}
		if !strings.Contains(log.String(), c.logged) {
			t.Errorf("%s: the log has no %q:\n%s", c.what, c.logged, log)
		}
	}
}

// TestOnceRecipients: at a door that knows the envelope only a refusal is logged once, and what a
// signature may still prove passes.
func TestOnceRecipients(t *testing.T) {
	d, log, meter := newSayingDoor(t, true, 0)
	m := d.Begin(t.Context(), Envelope{From: "a@reject.example"})
	var got []string
	for _, to := range []string{"you", "she", "bob", "ann", "mild", "bob", "open", "you"} {
		got = append(got, describe(m, m.Recipient(to+"@example.net")))
	}
	const blocked = "550 5.7.1 <a@reject.example> refused: list blocked; id ID"
	want := strings.Join([]string{blocked, blocked, blocked, "accept", "tag listed; list=blocked", blocked, "accept", blocked}, "|")
	if strings.Join(got, "|") != want {
		t.Errorf("got %s\nwant %s", strings.Join(got, "|"), want)
	}
	if n := strings.Count(log.String(), "msg=refused"); n != 1 {
		t.Errorf("%d lines:\n%s", n, log)
	}
	if n := strings.Count(strings.Join(meter.all, " "), "beside:"); n != 1 {
		t.Errorf("counted %q", meter.all)
	}
	m = d.Begin(t.Context(), Envelope{From: "a@partner.example"})
	if got := describe(m, m.Recipient("you@example.net")); got != "accept" {
		t.Error(got)
	}
}

// TestManyClasses: recipients with lists of their own are bounded, and others pass.
func TestManyClasses(t *testing.T) {
	var entries strings.Builder
	const many = smtpfilter.MaxClasses + 10
	for i := range many {
		fmt.Fprintf(&entries, "r%d@example.net news.example\n", i)
	}
	c, err := doortest.New(doortest.List{Name: "own", Entries: entries.String(), List: store.List{Action: verdict.Reject, PerRecipient: true}})
	if err != nil {
		t.Fatal(err)
	}
	d := New(Config{Protocol: "milter"}, Settings{Checker: c, Policy: smtpfilter.Policy{HeaderFields: []string{"From"}}})
	m := d.Begin(t.Context(), Envelope{From: "a@clean.example"})
	refused := 0
	for i := range many {
		if a := m.Recipient(fmt.Sprintf("r%d@example.net", i)); a.Reply.Code == 452 {
			refused++
		}
	}
	if refused != many-smtpfilter.MaxClasses {
		t.Errorf("%d recipients are refused, want %d", refused, many-smtpfilter.MaxClasses)
	}
	if a := m.Recipient("r1@example.net"); !a.Reply.IsZero() {
		t.Error(a.Reply)
	}
	m.Header([]byte("From: a@news.example\r\n"), nil)
	if a := m.End(); a.Reply.Code != 550 {
		t.Error(a)
	}
}
