package smtpfilter

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/wire"
)

// TestRefusalFits fills every part of a refusal with too much text. The reply must be one
// line of at most 512 bytes, and keep the id.
func TestRefusalFits(t *testing.T) {
	long := strings.Repeat("x", 400)
	for _, tt := range []struct{ sender, wrapped, reason, contact string }{
		{"a@example.com", "", "short", ""},
		{long + "@example.com", "", "short", "help"},
		{"a@example.com", "", long, "help"},
		{long, "", long, strings.Repeat("c", 200)},
		{"a\r\nb@example.com", "", "two\r\n250 lines", "help"},
		{"ä@example.com", "", "für alle\x00", ""},
		{long, long, long, strings.Repeat("c", 200)},
		{long, "a\r\nb@example.com", long, "help"},
		{"a\r\nb@example.com", long, long, "help"},
	} {
		p := Policy{Contact: tt.contact}
		f := verdict.Finding{Address: tt.sender, Verdict: verdict.Verdict{Action: verdict.Reject, Match: verdict.Match{
			List: "blocked", Reason: tt.reason, PublicReason: true, Sender: tt.wrapped}}}
		reply := p.Refusal(&f, "ID0123456789")
		bytes := reply.Append(nil)
		if len(bytes) > wire.MaxReplyLine || len(reply.Lines) != 1 {
			t.Errorf("%.20q, %.20q: %d bytes, %d lines", tt.sender, tt.reason, len(bytes), len(reply.Lines))
		}
		for _, part := range []string{"550 5.7.1 <", "refused: list blocked", "; id ID0123456789", tt.contact} {
			if !strings.Contains(string(bytes), part) {
				t.Errorf("%.20q, %.20q: no %q in %q", tt.sender, tt.reason, part, bytes)
			}
		}
		for _, c := range bytes[:len(bytes)-2] {
			if c < ' ' || c > '~' {
				t.Errorf("%.20q, %.20q: byte %#x in %q", tt.sender, tt.reason, c, bytes)
			}
		}
	}
}

func TestRejectText(t *testing.T) {
	for _, tt := range []struct{ template, reason, contact, want string }{
		{"", "why", "help", "<S> refused: list L (why); id I; help"},
		{"", "", "help", "<S> refused: list L; id I; help"},
		{"", "why", "", "<S> refused: list L (why); id I"},
		{"", "", "", "<S> refused: list L; id I"},
		{"no {sender}, see {contact} {id}", "why", "help", "no S, see help I"},
		{"listed {reason}", "", "", "listed"},
		{"{reason}", "{id} {contact}", "", "{id} {contact}"},
		{"{", "", "", "{"},
		{"{x {id}} {unknown} {id", "", "", "{x I} {unknown} {id"},
	} {
		p := Policy{RejectText: tt.template, Contact: tt.contact}
		if got := p.rejectText("S", "", "L", tt.reason, "I"); got != tt.want {
			t.Errorf("%q, reason %q, contact %q: %q, want %q", tt.template, tt.reason, tt.contact, got, tt.want)
		}
	}
}

// TestByWayOf has senders that forwarders wrapped.
func TestByWayOf(t *testing.T) {
	f := verdict.Finding{Address: "SRS0=x=tt=in.example=a@out.example", Verdict: verdict.Verdict{
		Action: verdict.Reject, Match: verdict.Match{List: "L", Sender: "a@in.example"}}}
	for template, want := range map[string]string{
		"":                     "550 5.7.1 <a@in.example> by way of <SRS0=x=tt=in.example=a@out.example> refused: list L; id I",
		"no {sender} here":     "550 5.7.1 no a@in.example by way of SRS0=x=tt=in.example=a@out.example here",
		"{list}: <{sender}>":   "550 5.7.1 L: <a@in.example> by way of <SRS0=x=tt=in.example=a@out.example>",
		"nothing to see, {id}": "550 5.7.1 nothing to see, I",
	} {
		p := Policy{RejectText: template}
		if got := p.Refusal(&f, "I").String(); got != want {
			t.Errorf("%q:\n got %s\nwant %s", template, got, want)
		}
	}
}

func TestPublicText(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                  "plain",
		"tab\tcr\r\nesc\x1b":     "tab?cr??esc?",
		"caf\u00e9 \u202e":       "caf? ?",
		"\xff\xfe":               "??",
		strings.Repeat("ä", 300): strings.Repeat("?", 200),
		strings.Repeat("x", 200): strings.Repeat("x", 200),
		strings.Repeat("x", 201): strings.Repeat("x", 200),
	} {
		if got := PublicText(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestReceivedField(t *testing.T) {
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	for _, tt := range []struct{ helo, client, want string }{
		{"mx.example.com", "192.0.2.1", "Received: from mx.example.com ([192.0.2.1])\r\n"},
		{"mx.example.com", "::ffff:192.0.2.1", "Received: from mx.example.com ([192.0.2.1])\r\n"},
		{"[192.0.2.9]", "2001:db8::1", "Received: from [192.0.2.9] ([IPv6:2001:db8::1])\r\n"},
		{"[IPv6:2001:db8::9]", "2001:db8::1", "Received: from [IPv6:2001:db8::9] ([IPv6:2001:db8::1])\r\n"},
		{"a(b)c", "192.0.2.1", "Received: from [192.0.2.1] ([192.0.2.1])\r\n"},
		{"a:b", "192.0.2.1", "Received: from [192.0.2.1] ([192.0.2.1])\r\n"},
		{"a;for=x", "192.0.2.1", "Received: from [192.0.2.1] ([192.0.2.1])\r\n"},
	} {
		got := receivedField(tt.helo, netip.MustParseAddr(tt.client), "gate.example", "ESMTP", "ID", when)
		want := tt.want + "\tby gate.example with ESMTP id ID;\r\n\tFri, 02 Jan 2026 03:04:05 +0100\r\n"
		if got != want {
			t.Errorf("%s, %s: %q", tt.helo, tt.client, got)
		}
	}
}
