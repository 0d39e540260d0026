package smtpfilter_test

import (
	"bufio"
	"crypto/tls"
	"path/filepath"
	"testing"
	"time"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/partial"
)

// TestLMTPClientLeaves has a client disconnect before the next hop has accepted its
// message, with QUIT or without, and with TLS. The client sends the message again, and
// nobody may get it twice.
func TestLMTPClientLeaves(t *testing.T) {
	for name, c := range map[string]struct {
		tls  bool
		last string
	}{"closes": {}, "QUIT": {last: "QUIT\r\n"}, "TLS": {tls: true}, "TLS and QUIT": {true, "QUIT\r\n"}} {
		t.Run(name, func(t *testing.T) {
			left, asked := make(chan struct{}), make(chan struct{}, 1)
			sink := smtptest.NewSink(t, smtptest.Config{LMTP: true, Answer: func(c smtptest.Command) string {
				if c.Line == ". RCPT TO:<b@example.net>" {
					asked <- struct{}{}
					<-left
				}
				return ""
			}})
			hop, err := nexthop.NewSMTP(nexthop.SMTPConfig{Addr: sink.Addr(), Hostname: "gate.example", ProbeInterval: -1, Reuse: true, LMTP: true})
			if err != nil {
				t.Fatal(err)
			}
			store := partial.Open(filepath.Join(t.TempDir(), "lmtp.partial"), partial.Options{})
			t.Cleanup(store.Close)
			g := newGate(t, gateOptions{target: hop, memory: store, wire: smtpfilter.Settings{TLS: smtptest.ServerTLS()}})
			send := func() *client {
				client := dial(t, g.addr)
				if c.tls {
					client.reply("220")
					client.send("EHLO client.example\r\nSTARTTLS\r\n")
					client.reply("250")
					client.reply("220")
					secure := tls.Client(client.Conn, &tls.Config{RootCAs: smtptest.Roots(), ServerName: smtptest.ServerName})
					client.Conn, client.in = secure, bufio.NewReader(secure)
					client.send("EHLO client.example\r\n")
					client.reply("250")
					client.mailToData("a@example.com")
				} else {
					client.toData("a@example.com")
				}
				client.send("Message-ID: <1@example.com>\r\n\r\ntext\r\n.\r\n")
				return client
			}
			first := send()
			<-asked
			first.send(c.last)
			first.Close()
			close(left)
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for late := time.After(waitLimit); store.Len() == 0; {
				select {
				case <-tick.C:
				case <-late:
					t.Fatal("nothing is remembered")
				}
			}
			send().reply("250 2.0.0 Ok: delivered before")
			if n := len(sink.Messages()); n != 1 {
				t.Errorf("%d messages", n)
			}
		})
	}
}
