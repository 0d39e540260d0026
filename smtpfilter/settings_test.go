package smtpfilter_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// TestValidateErrors wants an error that names the field, the value and the remedy.
func TestValidateErrors(t *testing.T) {
	hop := programTarget{}
	for want, s := range map[string]smtpfilter.Settings{
		"Settings.Checker is nil: set it":                             {NextHop: hop},
		"Settings.NextHop is nil: set it":                             {Checker: tableJudge{}},
		"Settings.TLSMode requires TLS":                               {Checker: tableJudge{}, NextHop: hop, TLSMode: wire.TLSRequired},
		"Settings.RequireAuth requires PassAuth":                      {Checker: tableJudge{}, NextHop: hop, RequireAuth: true},
		"Settings.CommandTimeout is negative: set it to 0":            {Checker: tableJudge{}, NextHop: hop, Rules: wire.Rules{CommandTimeout: -1}},
		"Settings.Policy.MaxHops is negative":                         {Checker: tableJudge{}, NextHop: hop, Policy: smtpfilter.Policy{MaxHops: -1}},
		`HeaderFields: "From:" is not the name of a header field: wr`: {Checker: tableJudge{}, NextHop: hop, Policy: smtpfilter.Policy{HeaderFields: []string{"From:"}}},
		`HeaderFields: "" is not`:                                     {Checker: tableJudge{}, NextHop: hop, Policy: smtpfilter.Policy{HeaderFields: []string{"From", ""}}},
		`HeaderFields: "Fröm" is not`:                                 {Checker: tableJudge{}, NextHop: hop, Policy: smtpfilter.Policy{HeaderFields: []string{"Fröm"}}},
		`RecipientDomains: "a..example"`:                              {Checker: tableJudge{}, NextHop: hop, Policy: smtpfilter.Policy{RecipientDomains: []string{"a..example"}}},
		`RecipientDomains: ".": an empty domain; write "example.com`:  {Checker: tableJudge{}, NextHop: hop, Policy: smtpfilter.Policy{RecipientDomains: []string{"."}}},
		`ExemptRecipients: "postmaster": not a recipient; write`:      {Checker: tableJudge{}, NextHop: hop, Policy: smtpfilter.Policy{ExemptRecipients: []string{"postmaster"}}},
		`ExemptRecipients: "a@b..example"`:                            {Checker: tableJudge{}, NextHop: hop, Policy: smtpfilter.Policy{ExemptRecipients: []string{"a@b..example"}}},
	} {
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		nl, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := smtpfilter.New(smtpfilter.Config{Hostname: "gate.example"})
		if l, err := server.Listen(nl, "", s); err == nil || l != nil {
			t.Errorf("Listen accepted the settings: want %q", want)
		}
		if err := nl.Close(); err != nil {
			t.Errorf("the socket is no longer the caller's: %v", err)
		}
		l := newGate(t, gateOptions{target: hop}).listener
		if _, err := l.Apply(s); err == nil {
			t.Errorf("Apply accepted the settings: want %q", want)
		}
	}
}

// TestValidateNormalizes wants the policy to match mail however its values are written, and
// the caller's slices unchanged.
func TestValidateNormalizes(t *testing.T) {
	domains := []string{"Example.ORG.", ".Bücher.Example"}
	s := smtpfilter.Settings{Checker: tableJudge{}, NextHop: programTarget{}, Policy: smtpfilter.Policy{
		HeaderFields:     []string{"from", "SENDER"},
		RecipientDomains: domains,
		ExemptRecipients: []string{"Abuse@", "Boss@Example.ORG.", "@BÜCHER.example"},
	}}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(domains, []string{"Example.ORG.", ".Bücher.Example"}) {
		t.Errorf("the caller's domains are %q now", domains)
	}
	for text, want := range map[string]struct{ taken, exempt bool }{
		"a@example.org":             {true, false},
		"a@sub.example.org":         {false, false},
		"abuse@example.org":         {true, true},
		"boss@EXAMPLE.org":          {true, true},
		"a@xn--bcher-kva.example":   {true, true},
		"a@x.xn--bcher-kva.example": {true, false},
	} {
		rcpt := verdict.ParseRecipient(text)
		if taken, exempt := s.Policy.TakesRecipient(rcpt), s.Policy.ExemptRecipient(rcpt); taken != want.taken || exempt != want.exempt {
			t.Errorf("%s: taken %v, exempt %v, want %v", text, taken, exempt, want)
		}
	}
	found := s.Policy.ReadHeader([]byte("From: a@b.example\r\nsender: c@d.example\r\n"), nil)
	if len(found.Senders) != 2 {
		t.Errorf("found %+v", found.Senders)
	}
	if again := s; again.Validate() != nil || !slices.Equal(again.Policy.RecipientDomains, s.Policy.RecipientDomains) {
		t.Errorf("validated twice: %q", again.Policy.RecipientDomains)
	}
}

// TestShutdownClosesUnserved wants Shutdown to close a Listener that never served, and one
// that is made after it.
func TestShutdownClosesUnserved(t *testing.T) {
	server := smtpfilter.New(smtpfilter.Config{Hostname: "gate.example"})
	listen := func() (net.Listener, *smtpfilter.Listener) {
		nl, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l, err := server.Listen(nl, "", smtpfilter.Settings{Checker: tableJudge{}, NextHop: nexthop.Target(programTarget{})})
		if err != nil {
			t.Fatal(err)
		}
		return nl, l
	}
	isClosed := func(nl net.Listener) {
		t.Helper()
		if err := nl.(*net.TCPListener).SetDeadline(time.Now()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the socket is open: %v", err)
		}
	}
	nl, l := listen()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Errorf("no mail was cut off, and Shutdown returned %v", err)
	}
	isClosed(nl)
	if err := l.Serve(); err != nil {
		t.Errorf("Serve after Shutdown: %v", err)
	}
	nl, l = listen()
	isClosed(nl)
	if err := l.Serve(); err != nil {
		t.Errorf("Serve after Shutdown: %v", err)
	}
}
