package rhsbl

import (
	"testing"

	"github.com/miekg/dns"
)

// TestNetwork asks over both transports, several times over one connection.
func TestNetwork(t *testing.T) {
	lists, _ := openStore(t, block("blocked", "spam.example\n"))
	addr := serve(t, newServer(t, lists, zonesOf()))
	for _, network := range []string{"udp", "tcp"} {
		c, err := dns.Dial(network, addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		client := dns.Client{Net: network}
		for range 3 {
			r, _, err := client.ExchangeWithConn(newQuestion("spam.example.bl.test", dns.TypeA), c)
			if err != nil || said(r) != "NOERROR 127.0.0.2" || !r.Authoritative || r.RecursionAvailable || !r.RecursionDesired {
				t.Errorf("%s: %v, %v", network, r, err)
			}
		}
	}
}
