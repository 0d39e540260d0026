package smtpfilter_test

import (
	"encoding/base64"
	"log/slog"
	"strings"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// TestAuthIsNotLogged has next hops repeat what they receive, in every possible reply. The
// log must show none of it, at any level, for one next hop or a group.
func TestAuthIsNotLogged(t *testing.T) {
	const password = "correct horse battery"
	secrets := []string{
		base64.StdEncoding.EncodeToString([]byte("\x00ann\x00" + password)),
		base64.StdEncoding.EncodeToString([]byte("ann")),
		base64.StdEncoding.EncodeToString([]byte(password)),
	}
	for _, tt := range []struct {
		echo string // {} is what came
		want string // the client's reply
	}{
		{"235 2.7.0 {}", "235 2.7.0 "},
		{"235-{}\n235 {}", "235-"},
		{"535 5.7.8 {}", "535 5.7.8 "},
		{"535 {}", "535 "},
		{"5{}", "454"},
		{"454 {}", "454 "},
		{"421 {}", "421 "},
		{"421-4.3.0 {}\n421 4.3.0 {}", "421-4.3.0 "},
		{"500 unknown command {}", "500 unknown"},
		{"{}", "454"},
		{"250 {}", "454"},
		{"354 {}", "454"},
		{"535 no\n250 {}", "454"},
		{"235 yes\n{}", ""},
		{"535-{}\n" + smtptest.Close, "454"},
		{"535 {}\n" + smtptest.Close, "535 "},
	} {
		for _, group := range []bool{false, true} {
			for _, args := range []string{"PLAIN " + secrets[0], "LOGIN"} {
				t.Run(tt.echo+"/"+args[:5]+map[bool]string{true: "/group"}[group], func(t *testing.T) {
					sink := smtptest.NewSink(t, smtptest.Config{
						Extensions: []string{"AUTH PLAIN LOGIN"},
						Answer:     echoing(tt.echo, secrets[2]),
					})
					var log lockedBuffer
					logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
					var target nexthop.Target
					target, err := nexthop.NewSMTP(nexthop.SMTPConfig{Addr: sink.Addr(), ProbeInterval: -1, Reuse: true, Logger: logger})
					if err != nil {
						t.Fatal(err)
					}
					if err := target.(*nexthop.SMTP).Probe(t.Context()); err != nil {
						t.Fatal(err)
					}
					if group {
						if target, err = nexthop.NewGroup([]nexthop.Target{target}, nexthop.GroupConfig{Logger: logger}); err != nil {
							t.Fatal(err)
						}
					}
					gate := newGate(t, gateOptions{target: target, log: logger, auth: true, wire: smtpfilter.Settings{TLS: smtptest.ServerTLS(), TLSMode: wire.TLSImplicit}})
					c := dialTLS(t, gate.addr)
					c.reply("220")
					c.send("EHLO client.example\r\n")
					c.reply("250")
					c.send("AUTH " + args + "\r\n")
					if args == "LOGIN" {
						c.reply("334")
						c.send(secrets[1] + "\r\n")
						c.reply("334")
						c.send(secrets[2] + "\r\n")
					}
					c.reply(tt.want)
					c.Close()
					gate.stop(t)
					text := log.String()
					if !strings.Contains(text, "mechanism="+args[:5]) || !strings.Contains(text, "disconnected") {
						t.Errorf("the log lacks lines:\n%s", text)
					}
					for _, secret := range append(secrets, password) {
						if strings.Contains(text, secret) {
							t.Errorf("the log shows %q:\n%s", secret, text)
						}
					}
				})
			}
		}
	}
}

// echoing returns an Answer function that repeats AUTH PLAIN, and the last answer of
// LOGIN.
func echoing(echo, last string) func(smtptest.Command) string {
	const asks = "334 VXNlcm5hbWU6"
	return func(c smtptest.Command) string {
		switch {
		case c.Line == "AUTH LOGIN":
			return asks
		case strings.HasPrefix(c.Line, "AUTH "), c.Line == last:
			return strings.ReplaceAll(echo, "{}", c.Line)
		case c.Line == "YW5u": // ann
			return asks
		}
		return ""
	}
}
