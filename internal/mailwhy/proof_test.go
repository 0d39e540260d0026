package mailwhy

import "testing"

// TestExplainProof has lines about senders that had to be proven, and about those that
// forwarders wrapped.
func TestExplainProof(t *testing.T) {
	const refused = "msg=refused id=2ZFPDJSVUUAR from=\"<SRS0=x=tt=in.example=a@out.example>\" " +
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
		{`msg=accepted id=2ZFPDJSVUUAR from=<a@in.example> identity=envelope list=partners ` +
			`entry=in.example source=p.txt:1 proof="spf: pass for 192.0.2.1" next_hop="250 Ok"`,
			"An entry let the sender <a@in.example> pass: list partners has in.example at p.txt:1. " +
				`The sender is proven (spf: pass for 192.0.2.1). The next hop has the message, and answered "250 Ok".`},
		{`msg=accepted id=2ZFPDJSVUUAR action=accept door=policy_service from=<a@in.example> to=<b@example.net> ` +
			`identity=envelope list=partners entry=in.example source=p.txt:1 proof="dkim: the message is not read yet"`,
			"An entry let the sender <a@in.example> pass: list partners has in.example at p.txt:1. " +
				"A policy service does not see signatures, so that the sender counts as proven (dkim: the message is not read yet). " +
				"The gate let the recipient pass (DUNNO). What became of the message is in the mail server's log."},
		{`msg=accepted id=2ZFPDJSVUUAR action=tag from=<b@out.example> identity=From sender=a@in.example list=partners ` +
			`entry=in.example source=p.txt:1 proof="dkim: a valid signature of in.example" next_hop="250 Ok" tagged_ahead="listed; list=l; proof=pending"`,
			"The gate had to mark the message (listed; list=l; proof=pending) before it could verify its signature, and cannot take that back. " +
				"An entry let the sender a@in.example in the field From pass: list partners has in.example at p.txt:1. " +
				`The sender is proven (dkim: a valid signature of in.example). The next hop has the message, and answered "250 Ok".`},
		{`msg=accepted id=2ZFPDJSVUUAR action=tag from=<a@in.example> identity=envelope list=l ` +
			`entry=in.example source=l.txt:1 recipient_policy=sales next_hop="250 Ok" refused_for=<b@example.net>`,
			"The gate marked the message because of the sender <a@in.example>: list l has in.example at l.txt:1. " +
				"The recipient policy sales counts for the recipient. " +
				`That holds for <b@example.net>, who would not get it alone: it is marked for all (mixed_headers = "tag"). ` +
				`The next hop has the message, and answered "250 Ok".`},
	} {
		if got := Explain(decided(t, c.line)); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.line, got, c.want)
		}
	}
}
