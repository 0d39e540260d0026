package nexthop

import (
	"testing"

	"spamgate/internal/smtptest"
)

func TestGreetingName(t *testing.T) {
	for text, want := range map[string]string{
		"mx.example.org ESMTP Postfix (Debian/GNU)": "mx.example.org",
		"MX.Example.ORG. ready":                     "mx.example.org",
		"mx.example.org":                            "mx.example.org",
		"localhost ESMTP":                           "",
		"[192.0.2.1] ESMTP":                         "",
		"Welcome to mx.example.org":                 "",
		"a\tb.example":                              "",
		"":                                          "",
	} {
		if got := GreetingName(text); got != want {
			t.Errorf("GreetingName(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestGreetings reads the greeting of a server, alone and as a member of a group.
func TestGreetings(t *testing.T) {
	sink := smtptest.NewSink(t)
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), ProbeInterval: -1})
	if got := Greetings(hop); got != nil {
		t.Errorf("before the first connection: %q", got)
	}
	if err := hop.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := Greetings(hop)
	if len(got) != 1 || got[0] == "" {
		t.Errorf("greetings: %q, want one", got)
	}
	group, err := NewGroup([]Target{hop, hop}, GroupConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	if all := Greetings(group); len(all) != 2 || all[0] != got[0] {
		t.Errorf("greetings of a group: %q, want %q twice", all, got)
	}
}
