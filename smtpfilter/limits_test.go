package smtpfilter_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/limit"
)

// TestConnectionLimit wants the second connection of an address to be refused in the
// greeting, and another one to be accepted after the first has ended.
func TestConnectionLimit(t *testing.T) {
	sink := smtptest.NewSink(t)
	ended := make(chan struct{}, 2)
	o := gateOptions{nextHop: sink.Addr(), limiter: limit.New(limit.Config{Client: limit.Limits{Connections: 1}})}
	o.meter = endMeter{ended}
	g := newGate(t, o)

	first := dial(t, g.addr)
	first.reply("220")
	second := dial(t, g.addr)
	second.reply("421 4.7.0 Too many connections from your address")
	second.closed()
	second.Close()
	<-ended
	first.send("QUIT\r\n")
	first.reply("221")
	first.Close()
	<-ended
	dial(t, g.addr).reply("220")
}

// endMeter reports the end of connections.
type endMeter struct{ ended chan<- struct{} }

func (endMeter) Connected(string)                   {}
func (m endMeter) Disconnected(string)              { m.ended <- struct{}{} }
func (endMeter) Message(string, smtpfilter.Outcome) {}

func (endMeter) Recipient(string, smtpfilter.RecipientOutcome) {}
func (endMeter) Limited(string, limit.Result)                  {}
func (endMeter) Auth(string, smtpfilter.AuthOutcome)           {}

// TestAllConnectionsLimit wants the reply for the limit of all clients together.
func TestAllConnectionsLimit(t *testing.T) {
	sink := smtptest.NewSink(t)
	g := newGate(t, gateOptions{nextHop: sink.Addr(), limiter: limit.New(limit.Config{MaxConnections: 1})})
	dial(t, g.addr).reply("220")
	second := dial(t, g.addr)
	second.reply("421 4.7.0 Too many connections at this server")
	second.closed()
}

// TestTarpit wants one of two listed senders to be delayed, and the other to be refused at
// once because the tarpit is full. Shutdown must wait for neither.
func TestTarpit(t *testing.T) {
	sink := smtptest.NewSink(t)
	g := newGate(t, gateOptions{
		nextHop: sink.Addr(),
		checker: mustJudge(t, "envelope spam@listed.example reject"),
		policy:  smtpfilter.Policy{Tarpit: 24 * time.Hour},
		tarpit:  limit.NewTarpit(1),
	})
	refused := make(chan string, 2)
	for range 2 {
		c := dial(t, g.addr)
		c.reply("220")
		c.send("HELO client.example\r\nMAIL FROM:<spam@listed.example>\r\n")
		c.reply("250")
		c.reply("250")
		c.send("RCPT TO:<b@example.net>\r\n")
		go func() {
			reply, err := c.readReply()
			if err != nil {
				reply = err.Error()
			}
			refused <- reply
		}()
	}
	check := func(reply string) {
		t.Helper()
		if !strings.HasPrefix(reply, "550 5.7.1 ") {
			t.Errorf("the gate says %q", reply)
		}
	}
	check(<-refused)
	select {
	case reply := <-refused:
		t.Fatalf("the other is not held: %q", reply)
	default:
	}
	done := make(chan error)
	go func() { done <- g.server.Shutdown(context.Background()) }()
	check(<-refused)
	g.stop(t) // both sessions may have a transaction open
	if err := <-done; err != nil {
		t.Error(err)
	}
}
