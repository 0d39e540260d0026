package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestListeners checks the listeners of a file, and what each inherits from [listen].
func TestListeners(t *testing.T) {
	const nextHop = "[next_hop]\naddr = 'smtp://mail.example'\ntls = 'required'\n"
	for _, test := range []struct {
		name string
		toml string
		want []string // name, addresses, tls, max_hops, lists, trusted_proxies
	}{
		{
			name: "listen alone",
			want: []string{"listen [127.0.0.1:2525] none 50 [] []"},
		},
		{
			name: "no tables in the array",
			toml: "listener = []",
			want: []string{"listen [127.0.0.1:2525] none 50 [] []"},
		},
		{
			name: "tables without an addr in [listen]",
			toml: "[[listener]]\nname = 'mx'\naddr = ':25'\n[[listener]]\naddr = [':465', ':587']\nmax_hops = 10",
			want: []string{"mx [:25] none 50 [] []", ":465 [:465 :587] none 10 [] []"},
		},
		{
			name: "inline tables",
			toml: "listener = [{addr = ':25'}, {name = 'too', addr = ':26', max_hops = 10}]",
			want: []string{":25 [:25] none 50 [] []", "too [:26] none 10 [] []"},
		},
		{
			name: "tables beside [listen]",
			toml: "[listen]\naddr = ':25'\n[[listener]]\nname = 'mx'\naddr = ':26'",
			want: []string{"listen [:25] none 50 [] []", "mx [:26] none 50 [] []"},
		},
		{
			name: "[listen] behind the tables",
			toml: "[[listener]]\naddr = ':25'\n[[listener]]\naddr = ':26'\nmax_hops = 10\nlists = []\ntrusted_proxies = ['192.0.2.2']\n" +
				"[listen]\nmax_hops = 20\nlists = ['blocked']\ntrusted_proxies = ['192.0.2.1']",
			want: []string{":25 [:25] none 20 [blocked] [192.0.2.1/32]", ":26 [:26] none 10 [] [192.0.2.2/32]"},
		},
		{
			name: "a certificate for some",
			toml: "[listen]\naddr = ':25'\ntls_cert = 'c'\ntls_key = 'k'\nexempt_authenticated = true\n[[listener]]\naddr = ':465'\ntls = 'implicit'\nauth = 'pass'",
			want: []string{"listen [:25] none 50 [] []", ":465 [:465] implicit 50 [] []"},
		},
		{
			name: "a certificate in [listen] that the only listener replaces",
			toml: "[listen]\ntls_cert = 'c'\ntls_key = 'k'\n[[listener]]\naddr = ':465'\ntls_cert = 'd'\ntls_key = 'l'\ntls = 'implicit'",
			want: []string{":465 [:465] implicit 50 [] []"},
		},
		{
			name: "TLS in [listen] whose certificate the listener has",
			toml: "[listen]\ntls = 'required'\n[[listener]]\naddr = ':587'\ntls_cert = 'c'\ntls_key = 'k'",
			want: []string{":587 [:587] required 50 [] []"},
		},
		{
			name: "authenticated by a proxy",
			toml: "[listen]\nexempt_authenticated = true\ntrusted_proxies = ['192.0.2.1']",
			want: []string{"listen [127.0.0.1:2525] none 50 [] [192.0.2.1/32]"},
		},
		{
			name: "free ports",
			toml: "[[listener]]\naddr = ['127.0.0.1:0', '127.0.0.1:0']\n[[listener]]\naddr = '127.0.0.1:0'",
			want: []string{"127.0.0.1:0 [127.0.0.1:0 127.0.0.1:0] none 50 [] []", "127.0.0.1:0 [127.0.0.1:0] none 50 [] []"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg, err := parse("f.toml", []byte(test.toml+"\n"+nextHop+"[[list]]\nname = 'blocked'\npath = 'blocked.txt'\n"), false)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range cfg.Listeners {
				got = append(got, fmt.Sprint(l.Name, " ", l.Addr, " ", l.TLS, " ", l.MaxHops, " ", l.Lists, " ", l.TrustedProxies))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			if opens := cfg.Listeners[0].Name == "listen"; opens != (len(cfg.Listen.Addr) > 0) {
				t.Errorf("[listen] has the addresses %q", cfg.Listen.Addr)
			}
		})
	}
}
