package config

import (
	"fmt"
	"slices"
	"testing"
)

// TestHops checks which listeners share a next hop, what their own has from [next_hop], and
// where its keys stand.
func TestHops(t *testing.T) {
	const header, listed = "listen.addr = '127.0.0.1:25'\n", "[[list]]\nname = 'blocked'\npath = 'b.txt'\n"
	for _, test := range []struct {
		name, toml string
		want       []string
	}{
		{"one for all", `
[next_hop]
addr = ["smtp://a.example", "smtp://b.example"]
[[listener]]
addr = ":1"
`, []string{"[smtp://a.example:25 smtp://b.example:25] none   [0 1] next_hop.addr[0] next_hop.tls"}},
		{"a string, with the keys of [next_hop]", `
[next_hop]
addr = "smtps://a.example"
tls = "required"
tls_name = "Mail.example"
[[listener]]
addr = ":1"
next_hop = "smtp://b.example"
[[listener]]
addr = ":2"
next_hop = "smtp://B.example:25"
`, []string{
			"[smtps://a.example:465] required mail.example  [0] next_hop.addr[0] next_hop.tls",
			"[smtp://b.example:25] required mail.example  [1 2] listener[0].next_hop[0] next_hop.tls",
		}},
		{"an array, and TLS that cannot apply", `
[next_hop]
addr = "smtp://a.example"
tls = "required"
tls_ca = "/ca.pem"
[[listener]]
addr = ":1"
next_hop = ["lmtp+unix:/run/lmtp", "lmtp+unix:/run/lmtp2"]
`, []string{
			"[smtp://a.example:25] required  /ca.pem [0] next_hop.addr[0] next_hop.tls",
			"[lmtp+unix:/run/lmtp lmtp+unix:/run/lmtp2] none   [1] listener[0].next_hop[0] next_hop.tls",
		}},
		{"a table", `
[next_hop]
addr = "lmtp+unix:/run/lmtp"
[[listener]]
addr = ":1"
[listener.next_hop]
addr = "smtp://a.example"
tls = "required"
tls_ca = "/ca.pem"
`, []string{
			"[lmtp+unix:/run/lmtp] none   [0] next_hop.addr[0] next_hop.tls",
			"[smtp://a.example:25] required  /ca.pem [1] listener[0].next_hop.addr[0] listener[0].next_hop.tls",
		}},
		{"a table without addr", `
[next_hop]
addr = "smtp://A.example"
[[listener]]
addr = ":1"
next_hop = { identity = "none" }
`, []string{
			"[smtp://a.example:25] none   [0] next_hop.addr[0] next_hop.tls",
			"[smtp://a.example:25] none   [1] next_hop.addr[0] next_hop.tls",
		}},
		{"the same as [next_hop]", `
[next_hop]
addr = "smtp://a.example"
[[listener]]
addr = ":1"
next_hop = "smtp://a.example:25"
`, []string{"[smtp://a.example:25] none   [0 1] next_hop.addr[0] next_hop.tls"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := Load(write(t, header+test.toml+listed))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range c.Hops() {
				got = append(got, fmt.Sprint(h.Addr, " ", h.TLS, " ", h.TLSName, " ", h.TLSCA, " ", h.Listeners, " ", h.AddrKey(0), " ", h.Key("tls")))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}
