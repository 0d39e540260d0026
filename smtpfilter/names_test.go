package smtpfilter_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// loopbackName knows the name of every client, and counts who waits for it.
type loopbackName struct{ asked atomic.Int32 }

func (*loopbackName) Ask(netip.Addr) {}

func (r *loopbackName) Name(context.Context, netip.Addr) string {
	r.asked.Add(1)
	return "client.test"
}

// TestNameOfClientThatLogsIn wants the next hop to receive the client's name before AUTH,
// after one lookup.
func TestNameOfClientThatLogsIn(t *testing.T) {
	sink := smtptest.NewSink(t, smtptest.Config{Extensions: []string{
		"AUTH PLAIN", "XCLIENT NAME ADDR", "XFORWARD NAME",
	}})
	target, err := nexthop.NewSMTP(nexthop.SMTPConfig{Addr: sink.Addr(), Hostname: "gate.example", ProbeInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := target.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	var names loopbackName
	g := newGate(t, gateOptions{target: target, auth: true, names: &names, wire: smtpfilter.Settings{
		TLS: smtptest.ServerTLS(), TLSMode: wire.TLSImplicit,
	}})
	c := dialTLS(t, g.addr)
	c.reply("220")
	c.send("EHLO client.example\r\n")
	c.reply("250")
	c.send("AUTH PLAIN AGFubgBzZWNyZXQ=\r\n")
	c.reply("235")
	c.mailToData("a@example.com")
	c.send("x: y\r\n.\r\n")
	c.reply("250")
	told := slices.ContainsFunc(sink.Commands(), func(c smtptest.Command) bool {
		return strings.HasPrefix(c.Line, "XCLIENT ") && strings.Contains(c.Line, " NAME=client.test")
	})
	if n := names.asked.Load(); !told || n != 1 {
		t.Errorf("asked %d times; the next hop got %v", n, sink.Commands())
	}
}
