package mailwhy

import "testing"

// TestExplainProof has lines about senders that had to be proven, and about those that
// forwarders wrapped.
func TestExplainProof(t *testing.T) {
	const refused = "time=2026-11-22T15:39:26.839Z level=INFO msg=refused id=2ZFPDJSVUUAR from=\"<SRS0=x=tt=in.example=a@out.example>\" " +
		"list=l entry=in.example source=l.txt:1 "
	for _, c := range []struct{ line, want string }{
		{refused + `identity=envelope sender=a@in.example by_way_of="SRS0=x=tt=in.example=a@out.example"`,
			"The gate refused the sender <a@in.example> by way of <SRS0=x=tt=in.example=a@out.example>: list l has in.example at l.txt:1."},
		{refused + `identity=From sender=a@in.example by_way_of="prvs=0123456789=a@in.example"`,
			"The gate refused the sender <a@in.example> by way of <prvs=0123456789=a@in.example> in the field From: list l has in.example at l.txt:1."},
		{refused + `identity=From sender=a@in.example entry_for=@example.net proof="dkim: no signature by in.example" unproven=partners`,
			"The gate refused the sender a@in.example in the field From: list l has in.example for @example.net at l.txt:1. " +
				"The entry of list partners lets only a proven sender pass, and this one is not (dkim: no signature by in.example)."},
		{refused + `identity=envelope refused_for=<b@example.net>`,
			`The gate refused the sender <SRS0=x=tt=in.example=a@out.example>: list l has in.example at l.txt:1. ` +
				"That holds for <b@example.net>, and so nobody got it: sent to the others alone it passes."},
		{`time=2026-11-22T15:39:26.839Z level=INFO msg=accepted id=2ZFPDJSVUUAR from=<a@in.example> identity=envelope list=partners ` +
			`entry=in.example source=p.txt:1 proof="spf: pass for 192.0.2.1" next_hop="250 Ok"`,
			"An entry let the sender <a@in.example> pass: list partners has in.example at p.txt:1. " +
				`Whether the sender is proven was asked (spf: pass for 192.0.2.1). The next hop has the message, and answered "250 Ok".`},
	} {
		r, ok := ParseLine([]byte(c.line))
		if !ok {
			t.Fatalf("no line: %s", c.line)
		}
		if got := Explain(r); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.line, got, c.want)
		}
	}
}
