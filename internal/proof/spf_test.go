package proof

import (
	"net/netip"
	"testing"

	"spamgate/blocklist/verdict"
)

// TestSPF asks whether clients may send for reverse-paths.
func TestSPF(t *testing.T) {
	w := newWorld(t)
	w.AddText("partner.example", "v=spf1 ip4:198.51.100.1 ip6:2001:db9::1 mx ~all", 60)
	w.AddMX("partner.example", "mx.partner.example", 60)
	w.AddAddr("mx.partner.example", "198.51.100.2", 60)
	w.AddText("attacker.example", "v=spf1 +all", 60)
	w.AddText("helo.example", "v=spf1 a -all", 60)
	w.AddAddr("helo.example", "198.51.100.3", 60)
	for _, c := range []struct {
		client, path, address string
		stage                 verdict.Stage
		want                  string
	}{
		{"198.51.100.1", "ann@partner.example", "", 0, "proven: spf: pass for 198.51.100.1"},
		{"198.51.100.1", "Ann@Partner.EXAMPLE", "ann@partner.example", 0, "proven: spf: pass for 198.51.100.1"},
		{"198.51.100.2", "ann@partner.example", "", 0, "proven: spf: pass for 198.51.100.2"},
		{"2001:db9::1", "ann@partner.example", "", 0, "proven: spf: pass for 2001:db9::1"},
		{"::ffff:198.51.100.1", "ann@partner.example", "", 0, "proven: spf: pass for 198.51.100.1"},
		{"198.51.100.9", "ann@partner.example", "", 0, "not proven: spf: softfail for 198.51.100.9"},
		{"198.51.100.1", "ann@nothing.example", "", 0, "not proven: spf: none for 198.51.100.1"},
		{"198.51.100.1", "ann@[198.51.100.1]", "", 0, "not proven: spf: an address literal has no record"},
		{"198.51.100.3", "", "", 0, "proven: spf: pass for 198.51.100.3"},
		{"198.51.100.4", "", "", 0, "not proven: spf: fail for 198.51.100.4"},
		// The identity must be the reverse-path.
		{"198.51.100.1", "ann@partner.example", "", verdict.Header, "not proven: spf: it proves only the reverse-path"},
		{"198.51.100.1", "srs0=h=t=partner.example=ann@attacker.example", "ann@partner.example", 0,
			"not proven: spf: it proves only the reverse-path itself"},
		{"198.51.100.1", `"x@attacker.example"@partner.example`, "", 0, "not proven: spf: the local part has an @"},
	} {
		m := &verdict.Message{Client: netip.AddrPortFrom(netip.MustParseAddr(c.client), 25), Helo: "helo.example", ReversePath: c.path}
		if c.address == "" {
			c.address = c.path
		}
		if c.stage == 0 {
			c.stage = verdict.Envelope
		}
		p := w.proofs.Message().Prove(t.Context(), m, c.stage, address(t, c.address), verdict.SPF)
		if say(p) != c.want {
			t.Errorf("%+v: %s", c, say(p))
		}
	}
}
