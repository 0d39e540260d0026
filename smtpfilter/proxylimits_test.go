package smtpfilter_test

import (
	"fmt"
	"net/netip"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/limit"
	"spamgate/smtpfilter/wire"
)

// everywhere holds all addresses, as operators write them for a port that only a
// load balancer can reach.
var everywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

// TestProxyConnections wants a proxy's connections to count for the client that they name,
// even if its address is among those of the proxies.
func TestProxyConnections(t *testing.T) {
	const refused = "421 4.7.0 Too many connections from your address"
	start := func(t *testing.T, w smtpfilter.Settings) *gate {
		return newGate(t, gateOptions{
			nextHop: smtptest.NewSink(t).Addr(),
			limiter: limit.New(limit.Config{Client: limit.Limits{Connections: 1}, MaxConnections: 100}),
			wire:    w,
		})
	}
	t.Run("PROXY", func(t *testing.T) {
		g := start(t, smtpfilter.Settings{Rules: wire.Rules{ProxySources: everywhere}})
		tell := func(client string) *client {
			c := dial(t, g.addr)
			c.send(fmt.Sprintf("PROXY TCP4 %s 198.51.100.25 4711 25\r\n", client))
			return c
		}
		for range 3 { // health checks of the proxy itself
			c := dial(t, g.addr)
			c.send("PROXY UNKNOWN\r\n")
			c.reply("220")
		}
		tell("192.0.2.1").reply("220")
		tell("192.0.2.1").reply(refused)
		tell("192.0.2.2").reply("220")
		tell("127.0.0.1").reply("220")
		tell("127.0.0.1").reply(refused)
	})
	t.Run("XCLIENT", func(t *testing.T) {
		g := start(t, smtpfilter.Settings{Rules: wire.Rules{TrustedProxies: everywhere}})
		name := func(client, reply string) {
			t.Helper()
			c := dial(t, g.addr)
			c.reply("220")
			c.send("EHLO proxy.example\r\n")
			c.reply("250")
			c.send("XCLIENT ADDR=" + client + "\r\n")
			c.reply(reply)
		}
		for range 3 {
			dial(t, g.addr).reply("220")
		}
		name("192.0.2.1", "220")
		name("192.0.2.1", refused)
		name("192.0.2.2", "220")
		dial(t, g.addr).reply("220")
	})
}
