package smtpfilter_test

import (
	"testing"
	"time"

	"spamgate/internal/smtptest"
)

// TestResetFreesNextHop resets five transactions after the next hop has accepted a
// recipient. Each must return its connection to the next hop while the client stays.
func TestResetFreesNextHop(t *testing.T) {
	sink := smtptest.NewSink(t, smtptest.Config{})
	g := newGate(t, gateOptions{nextHop: sink.Addr()})
	c := dial(t, g.addr)
	c.reply("220")
	c.send("HELO client.example\r\n")
	c.reply("250")
	const resets = 5
	for range resets {
		c.send("MAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.net>\r\nRSET\r\n")
		for range 3 {
			c.reply("250")
		}
	}
	quits := func() int {
		n := 0
		for _, command := range sink.Commands() {
			if command.Verb() == "QUIT" {
				n++
			}
		}
		return n
	}
	for late := time.Now().Add(time.Minute); quits() < resets; time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("%d of %d connections to the next hop were given back", quits(), resets)
		}
	}
}
