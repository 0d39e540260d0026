package mailwhy

import (
	"testing"

	"spamgate/internal/decisions"
)

// TestExplainDoor has lines of doors, whose mail servers have the message and not a next hop.
func TestExplainDoor(t *testing.T) {
	const accepted = "msg=accepted id=2ZFPDJSVUUAR "
	const listed = " identity=envelope list=l entry=x.example source=l.txt:1 "
	for _, c := range []struct{ line, want string }{
		{accepted + "door=policy_service to=<you@example.net>",
			"The gate let the recipient pass (DUNNO). What became of the message is in the mail server's log."},
		{accepted + "door=policy_service action=tag from=<a@x.example> to=<you@example.net>" + listed,
			"The gate marked the message because of the sender <a@x.example>: list l has x.example at l.txt:1. " +
				"The gate let the recipient pass. What became of the message is in the mail server's log."},
		{accepted + "door=policy_service from=<a@x.example> exempt=no_recipient" + listed,
			"The sender <a@x.example> is listed (list l has x.example at l.txt:1) and passed: the mail server named no recipient, " +
				"so that none could be refused. The gate let the message pass (DUNNO). What became of it is in the mail server's log."},
		{accepted + "door=milter to=<you@example.net> queue_id=4F3A2",
			"The gate let the message pass. What became of it is in the mail server's log, there as 4F3A2."},
		{accepted + "door=milter to=<you@example.net>",
			"The gate let the message pass. What became of it is in the mail server's log."},
		{accepted + `next_hop="250 Ok"`, `The next hop has the message, and answered "250 Ok".`},
		{`msg="message refused" id=2ZFPDJSVUUAR door=milter error=long`,
			"The gate refused the form of the message, not the sender. Why: long."},
		{`msg="message refused" id=2ZFPDJSVUUAR error=long`,
			"The gate refused the form of the message, not the sender. The next hop does not have it. Why: long."},
	} {
		if got := Explain(decided(t, c.line)); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.line, got, c.want)
		}
	}
}

func TestNotAddress(t *testing.T) {
	for from, want := range map[string]string{
		"root":             "it has no domain",
		"root@":            "it has no domain",
		"@b.example":       `no local part: nothing before the "@"`,
		"a@b.example":      "",
		"<>":               "",
		"":                 "",
		"0123456789abcdef": "", // a hash
		"*@b.example":      "", // the domain only
		"*":                "",
	} {
		if got := NotAddress(&decisions.Decision{Sender: from}); got != want {
			t.Errorf("%s: %q, want %q", from, got, want)
		}
	}
}
