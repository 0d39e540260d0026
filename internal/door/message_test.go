package door

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/internal/door/doortest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/limit"
)

// newChecker returns a Checker with a list for each action.
func newChecker(t testing.TB) doortest.Checker {
	t.Helper()
	c, err := doortest.New(
		doortest.List{Name: "always", Entries: "<>\ncleared@reject.example\n", List: store.List{Type: blocklist.Allow, Override: true}},
		doortest.List{Name: "blocked", Entries: "reject.example  # bulk mail\n", List: store.List{Action: verdict.Reject, PublicReason: true}},
		doortest.List{Name: "later", Entries: "defer.example\n", List: store.List{Action: verdict.Defer}},
		doortest.Dropped,
		doortest.List{Name: "marked", Entries: "tag.example  # unsure\n", List: store.List{Action: verdict.Tag, PublicReason: true}},
		doortest.List{Name: "tried", Entries: "reject.example\n", List: store.List{Action: verdict.Monitor}},
	)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// counts is a Meter that writes down what it counts.
type counts struct {
	smtpfilter.NoMeter
	all []string
}

func (c *counts) Message(name string, o smtpfilter.Outcome) {
	c.all = append(c.all, name+":"+o.String())
}
func (c *counts) Recipient(name string, o smtpfilter.RecipientOutcome) {
	c.all = append(c.all, o.String())
}
func (c *counts) Limited(name string, r limit.Result) { c.all = append(c.all, "limited "+r.Key()) }

// newDoor returns a Door, its log and its counts.
func newDoor(t testing.TB, once bool) (*Door, *bytes.Buffer, *counts) {
	log, meter := new(bytes.Buffer), new(counts)
	policy := smtpfilter.Policy{
		HeaderFields: []string{"From"}, MaxAddresses: 3, ExemptRecipients: []string{"abuse@"},
		ExemptClients: []netip.Prefix{netip.MustParsePrefix("192.0.2.9/32")}, ExemptAuthenticated: true,
	}
	if err := policy.Validate(); err != nil {
		t.Fatal(err)
	}
	d := New(Config{
		Protocol: "milter", Name: "beside", Log: slog.New(slog.NewTextHandler(log, nil)), Meter: meter, Once: once,
	}, Settings{Checker: newChecker(t), Policy: policy})
	return d, log, meter
}

func TestMessage(t *testing.T) {
	const friend, abuse = "you@example.net", "abuse@example.net"
	for _, c := range []struct {
		what     string
		envelope Envelope
		to       []string
		header   string
		want     []string // for each recipient, then for the header
		counted  string
		logged   []string
	}{
		{"nobody knows the sender", Envelope{From: "a@clean.example"}, []string{friend}, "From: b@clean.example\r\n",
			[]string{"accept", "accept"}, "accepted beside:accepted", []string{"msg=accepted"}},
		{"a listed sender", Envelope{From: "a@reject.example"}, []string{friend, "postmaster", abuse}, "",
			[]string{"550 5.7.1 <a@reject.example> refused: list blocked (bulk mail); id ID", "accept", "accept", "accept"},
			"listed accepted accepted beside:accepted",
			[]string{"msg=monitored", "msg=refused", "to=<you@example.net>", "door=milter listener=beside", "msg=accepted", "exempt=recipient"}},
		{"a listed sender in the header", Envelope{From: "a@clean.example"}, []string{friend}, "Subject: x\nFrom: b@reject.example\n",
			[]string{"accept", "550 5.7.1 <b@reject.example> refused: list blocked (bulk mail); id ID"},
			"accepted beside:listed", []string{"msg=refused", "identity=From", "sender=b@reject.example"}},
		{"only exempt recipients", Envelope{From: "a@clean.example"}, []string{abuse}, "From: b@reject.example\r\n",
			[]string{"accept", "accept"}, "accepted beside:accepted", []string{"exempt=recipient"}},
		{"to be tried again", Envelope{From: "a@defer.example"}, []string{friend}, "",
			[]string{"451 4.7.1 <a@defer.example> refused: list later; id ID", "accept"}, "listed beside:accepted", nil},
		{"a discard list", Envelope{From: "a@discard.example"}, []string{friend, abuse}, "From: b@tag.example\r\n",
			[]string{"discard [listed; list=dropped]", "accept", "discard [listed; list=dropped] listed; list=marked; reason=unsure"},
			"discarded accepted beside:accepted", []string{"msg=discarded", "to=<you@example.net>", "msg=accepted"}},
		{"a discard list for the header", Envelope{From: "a@clean.example"}, []string{friend}, "From: b@discard.example\r\n",
			[]string{"accept", "discard [listed; list=dropped]"}, "accepted beside:discarded", []string{"msg=discarded"}},
		{"two tags", Envelope{From: "a@tag.example"}, []string{friend}, "From: b@tag.example\r\n",
			[]string{"tag listed; list=marked; reason=unsure", "tag listed; list=marked; reason=unsure"}, "accepted beside:accepted", []string{"action=tag"}},
		{"a bounce", Envelope{}, []string{friend}, "From: b@reject.example\r\n",
			[]string{"accept", "accept"}, "accepted beside:accepted", []string{"from=<>"}},
		{"cleared by an override", Envelope{From: "cleared@reject.example"}, []string{friend}, "From: b@reject.example\r\n",
			[]string{"accept", "accept"}, "accepted beside:accepted", nil},
		{"an exempt client", Envelope{From: "a@reject.example", Client: netip.MustParseAddrPort("192.0.2.9:25")}, []string{friend}, "From: b@reject.example\r\n",
			[]string{"accept", "accept"}, "accepted beside:accepted", []string{"client=192.0.2.9:25", "exempt=client"}},
		{"an authenticated client", Envelope{From: "a@reject.example", Login: "ann"}, []string{friend}, "",
			[]string{"accept", "accept"}, "accepted beside:accepted", []string{"authenticated=true", "exempt=authenticated"}},
		{"not an address", Envelope{From: "a b@reject.example"}, []string{friend, abuse}, "From: b@clean.example\r\n",
			[]string{"553 5.1.7 Sender address not understood; id ID", "accept", "accept"}, "listed accepted beside:accepted", nil},
		{"too many addresses", Envelope{From: "a@clean.example"}, []string{friend}, "From: a@a.example, b@b.example, c@c.example, d@d.example\r\n",
			[]string{"accept", "554 5.6.0 Too many or too complex sender addresses in the header (limit 3); id ID"}, "accepted beside:refused", []string{`msg="message refused"`}},
		{"too many addresses for exempt recipients", Envelope{From: "a@clean.example"}, []string{abuse}, "From: a@a.example, b@b.example, c@c.example, d@d.example\r\n",
			[]string{"accept", "accept"}, "accepted beside:accepted", nil},
	} {
		d, log, meter := newDoor(t, false)
		m := d.Begin(t.Context(), c.envelope)
		var got []string
		for _, to := range c.to {
			got = append(got, describe(m, m.Recipient(to)))
		}
		m.Header([]byte(c.header), nil)
		a := m.End()
		if got = append(got, describe(m, a)); a.Reply.IsZero() {
			m.Passed(false)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
		if got := strings.Join(meter.all, " "); got != c.counted {
			t.Errorf("%s: counted %q, want %q", c.what, got, c.counted)
		}
		for _, part := range c.logged {
			if !strings.Contains(log.String(), part) {
				t.Errorf("%s: the log has no %q:\n%s", c.what, part, log)
			}
		}
	}
}

// describe returns an answer in short.
func describe(m *Message, a Answer) string {
	if !a.Reply.IsZero() {
		return strings.ReplaceAll(a.Reply.String(), m.ID(), "ID")
	}
	text := a.Action.String()
	if a.DiscardTag != "" {
		text += fmt.Sprintf(" [%s]", a.DiscardTag)
	}
	for _, tag := range a.Tags {
		text += " " + tag
	}
	return text
}

// TestNoRecipient: a listed sender passes if the mail server names no recipient, and the log says
// that this is the reason.
func TestNoRecipient(t *testing.T) {
	for _, c := range []struct {
		from string
		to   []string
		want string // exempt in the log
	}{
		{"a@reject.example", nil, "exempt=no_recipient"},
		{"a@discard.example", nil, "exempt=no_recipient"},
		{"a@reject.example", []string{"you@example.net"}, "exempt=no_recipient"}, // who is refused
		{"a@reject.example", []string{"abuse@example.net"}, "exempt=recipient"},
		{"a@clean.example", nil, ""},
		{"a@tag.example", nil, ""},
	} {
		d, log, _ := newDoor(t, true)
		m := d.Begin(t.Context(), Envelope{From: c.from})
		for _, to := range c.to {
			m.Recipient(to)
		}
		if a := m.AnyRecipient(); !a.Reply.IsZero() {
			t.Errorf("%s: refused: %v", c.from, a.Reply)
		}
		m.Passed(true)
		_, accepted, _ := strings.Cut(log.String(), "msg=accepted")
		if accepted == "" || !strings.Contains(accepted, c.want) || c.want == "" && strings.Contains(accepted, "exempt=") {
			t.Errorf("%s to %q: want %q:\n%s", c.from, c.to, c.want, log)
		}
	}
}

// TestClient: the log shows the client's port if the mail server tells it.
func TestClient(t *testing.T) {
	for client, want := range map[string]string{
		"192.0.2.5:25":       " client=192.0.2.5:25 ",
		"192.0.2.5:0":        " client=192.0.2.5 ",
		"[2001:db8::5]:4321": " client=[2001:db8::5]:4321 ",
		"[2001:db8::5]:0":    " client=2001:db8::5 ",
		"":                   "",
	} {
		d, log, _ := newDoor(t, false)
		e := Envelope{From: "a@reject.example"}
		if client != "" {
			e.Client = netip.MustParseAddrPort(client)
		}
		d.Begin(t.Context(), e).Recipient("you@example.net")
		if !strings.Contains(log.String(), want) || want == "" && strings.Contains(log.String(), "client=") {
			t.Errorf("%q:\n%s", client, log)
		}
	}
}

// TestOnce: at a door that asks for each recipient, a refused message is one line and one
// message.
func TestOnce(t *testing.T) {
	d, log, meter := newDoor(t, true)
	m := d.Begin(t.Context(), Envelope{From: "a@reject.example"})
	for range 3 {
		if m.Recipient("you@example.net").Reply.IsZero() {
			t.Error("not refused")
		}
	}
	if n := strings.Count(log.String(), "msg=refused"); n != 1 {
		t.Errorf("%d lines:\n%s", n, log)
	}
	if got := strings.Join(meter.all, " "); got != "beside:listed listed listed listed" {
		t.Errorf("counted %q", got)
	}
}

// TestHeaderFault: a field that is too long to be judged refuses the message, unless every
// recipient is exempt, and other fields may be long.
func TestHeaderFault(t *testing.T) {
	long := strings.Repeat("x", 999)
	for _, c := range []struct {
		header string
		to     []string
		want   string
	}{
		{"From: a@clean.example\r\nSubject: " + long + "\r\n", []string{"you@example.net"}, "accept"},
		{"From: a@clean.example\r\n" + long + "\r\n", []string{"you@example.net"}, "554 5.6.0 Header field From has a line of 999 bytes (limit 998); id ID"},
		{"From: a@clean.example\r\n" + long + "\r\n", []string{"you@example.net", "abuse@example.net"}, "554 5.6.0 Header field From has a line of 999 bytes (limit 998); id ID"},
		{"From: a@clean.example\r\n" + long + "\r\n", []string{"postmaster", "abuse@example.net"}, "accept"},
		{"From: a@clean.example\n" + strings.Repeat(" \n", 6000) + "\n", []string{"you@example.net"}, "554 5.6.0 Header field From too long: 18021 bytes (limit 16384); id ID"},
	} {
		d, log, meter := newDoor(t, false)
		m := d.Begin(t.Context(), Envelope{From: "a@clean.example"})
		for _, to := range c.to {
			m.Recipient(to)
		}
		m.Header([]byte(c.header), nil)
		if m.Content() != nil {
			t.Error("it wants the body")
		}
		if got := describe(m, m.End()); got != c.want {
			t.Errorf("%.40q to %q: %q, want %q", c.header, c.to, got, c.want)
		}
		refused := c.want != "accept"
		if strings.Contains(log.String(), `msg="message refused"`) != refused || slices.Contains(meter.all, "beside:refused") != refused {
			t.Errorf("%.40q to %q: counted %q, log:\n%s", c.header, c.to, meter.all, log)
		}
	}
}

// TestHeaderTooLarge: a header that is too long to be judged is refused as at the proxy.
func TestHeaderTooLarge(t *testing.T) {
	d, log, meter := newDoor(t, false)
	m := d.Begin(t.Context(), Envelope{From: "a@clean.example"})
	m.Recipient("you@example.net")
	if got, want := describe(m, m.HeaderTooLarge()), fmt.Sprintf("552 5.3.4 Header section larger than %d bytes", m.HeaderLimit()); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !strings.Contains(log.String(), `msg="message refused"`) || !strings.Contains(log.String(), "to=<you@example.net>") {
		t.Errorf("the log:\n%s", log)
	}
	if got := strings.Join(meter.all, " "); got != "accepted beside:refused" {
		t.Errorf("counted %q", got)
	}
}

// TestLoginsCount: clients that log in are exempt only if the policy says so.
func TestLoginsCount(t *testing.T) {
	d, _, _ := newDoor(t, false)
	settings := *d.Settings()
	settings.Policy.ExemptAuthenticated = false
	d.Apply(settings)
	m := d.Begin(t.Context(), Envelope{From: "a@reject.example", Login: "ann"})
	if a := m.Recipient("you@example.net"); a.Reply.Code != 550 {
		t.Errorf("a client that has logged in: %s", describe(m, a))
	}
}

// TestAbandoned: a message that does not come to its end is counted once, if a recipient was
// taken, and its signatures are verified no more.
func TestAbandoned(t *testing.T) {
	d, _, meter := newSayingDoor(t, false, smtpfilter.MixedRefuse)
	settings := *d.Settings()
	verifier := &countVerifier{}
	settings.Signatures = verifier
	d.Apply(settings)
	begin := func(from string, to ...string) *Message {
		m := d.Begin(t.Context(), Envelope{From: from})
		for _, r := range to {
			m.Recipient(r + "@example.net")
		}
		return m
	}
	begin("a@clean.example").Abandoned()
	begin("a@reject.example", "eve").Abandoned()
	begin("a@discard.example", "eve").Abandoned()
	m := begin("ceo@partner.example", "eve")
	m.Header([]byte("From: ceo@partner.example\r\nDKIM-Signature: v=1; a=rsa-sha256; d=partner.example; s=s; h=from; b=; bh=\r\n"), nil)
	if m.Content() == nil {
		t.Fatal("nothing depends on the signature")
	}
	m.Abandoned()
	if verifier.aborted == 0 {
		t.Error("the verification goes on")
	}
	m.Abandoned()
	want := "listed discarded beside:abandoned accepted beside:abandoned"
	if got := strings.Join(meter.all, " "); got != want {
		t.Errorf("counted %q, want %q", got, want)
	}
}

// countVerifier verifies nothing, and counts what is aborted.
type countVerifier struct{ aborted int }

func (v *countVerifier) Verify(context.Context, []string) smtpfilter.Verification { return v }

func (v *countVerifier) Write(b []byte) (int, error) { return len(b), nil }
func (v *countVerifier) Finish() []verdict.Signature { return nil }
func (v *countVerifier) Abort()                      { v.aborted++ }
