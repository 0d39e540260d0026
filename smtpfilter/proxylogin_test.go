package smtpfilter_test

import (
	"net/netip"
	"net/textproto"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/wire"
)

// TestProxyLogin has a trusted proxy send who is logged in. A listed sender must be
// accepted only then, and only if the policy says so.
func TestProxyLogin(t *testing.T) {
	for _, tt := range []struct {
		name    string
		exempt  bool
		xclient string
		want    int
	}{
		{"logged in", true, "XCLIENT ADDR=192.0.2.7 LOGIN=you", 250},
		{"not logged in", true, "XCLIENT ADDR=192.0.2.7 LOGIN=[UNAVAILABLE]", 550},
		{"not wanted", false, "XCLIENT ADDR=192.0.2.7 LOGIN=you", 550},
	} {
		t.Run(tt.name, func(t *testing.T) {
			gate := newGate(t, gateOptions{
				nextHop: smtptest.NewSink(t, smtptest.Config{}).Addr(),
				checker: mustJudge(t, "envelope spam@listed.example reject"),
				policy:  smtpfilter.Policy{ExemptAuthenticated: tt.exempt},
				wire:    smtpfilter.Settings{Rules: wire.Rules{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}},
			})
			c, err := textproto.Dial("tcp", gate.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			say := func(line string, want int) {
				t.Helper()
				if line != "" {
					if err := c.PrintfLine("%s", line); err != nil {
						t.Fatal(err)
					}
				}
				if _, text, err := c.ReadResponse(want); err != nil {
					t.Fatalf("%s: %v (%s)", line, err, text)
				}
			}
			say("", 220)
			say(tt.xclient, 220)
			say("EHLO client.example", 250)
			say("MAIL FROM:<spam@listed.example>", 250)
			say("RCPT TO:<b@example.net>", tt.want)
		})
	}
}
