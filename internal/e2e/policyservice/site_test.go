package policyservice

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// lists have a list for each action.
const lists = `
[[list]]
name = "friends"
path = "friends.txt"
type = "allow"

[[list]]
name = "blocked"
path = "blocked.txt"

[[list]]
name = "fields"
path = "fields.txt"
stage = ["header"]
` + harness.MilderLists

var files = map[string]string{
	"friends.txt": "friend@spam.example\n",
	"blocked.txt": "spam.example  # unsolicited mail\nbücher.example  # unsolicited mail\n",
	"later.txt":   "later.example  # under observation\n",
	"marked.txt":  "tag.example  # unsure\n",
	"dropped.txt": "drop.example\n",
	"fields.txt":  "fields.example\n",
}

// gateSetup returns a gate with a policy service at an address.
func gateSetup(addr string) harness.Setup {
	return harness.Setup{Lists: lists, Files: files, Tables: fmt.Sprintf(`
[policy]
exempt_recipients = ["abuse@"]
exempt_clients = ["127.0.0.9/32"]
allow_discard = true

[[policy_service]]
name = "postfix"
addr = %q
`, addr)}
}

// mailboxes are those of Postfix.
const mailboxes = "virtual_mailbox_maps = inline:{ you@example.org=you/, me@example.org=me/, abuse@example.org=abuse/, " +
	"postmaster@example.org=postmaster/, one@example.org=one/, two@example.org=two/, three@example.org=three/ }"

// site is a gate, and a Postfix that asks it.
type site struct {
	t testing.TB
	*harness.Postfix
	gate *harness.Gate
}

// open starts a gate and a Postfix with more parameters, in which POLICY is the policy service.
// Postfix gets mail at service, a line of master.cf.
func open(t testing.TB, service string, parameters ...string) *site {
	t.Helper()
	g := harness.StartGate(t, gateSetup("127.0.0.1:0"))
	addr := g.WaitRecord("door open", "listener", "postfix").Text("addr")
	return &site{t, startPostfix(t, service, "inet:"+addr, parameters...), g}
}

// startPostfix starts a Postfix that asks the policy service at an address.
func startPostfix(t testing.TB, service, policy string, parameters ...string) *harness.Postfix {
	t.Helper()
	more := []string{mailboxes}
	for _, line := range parameters {
		more = append(more, strings.ReplaceAll(line, "POLICY", policy))
	}
	return harness.StartPostfixService(t, service, harness.Nowhere, more...)
}

// recommended are the lines of main.cf in the documentation.
const recommended = "smtpd_recipient_restrictions = reject_unauth_destination, check_policy_service { POLICY, default_action=DUNNO, timeout=5s }"

// smtpd is the service that gets mail in Debian's Postfix, which is chrooted.
const smtpd = "ADDR:PORT inet n - y - - smtpd"

// dial connects to Postfix from an address.
func (s *site) dial(from string) *harness.Client { return harness.MustDialFrom(s.t, s.Addr, from) }

// in returns the site for a subtest.
func (s *site) in(t testing.TB) *site { return &site{t, s.Postfix, s.gate} }

// wantRecords waits until n lines of the policy service's log have a text, keys and values. More
// than n are an error.
func (s *site) wantRecords(n int, text string, with ...string) {
	s.t.Helper()
	with = append(with, "door", "policy_service", "listener", "postfix")
	harness.WaitFor(s.t, fmt.Sprintf("%d lines %q %q", n, text, with), func() bool { return len(s.gate.Records(text, with...)) >= n })
	if got := len(s.gate.Records(text, with...)); got != n {
		s.t.Errorf("%d lines %q %q, want %d", got, text, with, n)
	}
}

var anID = regexp.MustCompile(`\bid [A-Z2-7]{12}\b`)

// withoutID replaces the id in a reply.
func withoutID(reply string) string { return anID.ReplaceAllString(reply, "id ID") }

// tags returns the fields X-Spamgate in the only message of a mailbox.
func (s *site) tags(user string) (tags []string) {
	s.t.Helper()
	for line := range strings.Lines(s.OneMail(user)) {
		if text, ok := strings.CutPrefix(line, "X-Spamgate: "); ok {
			tags = append(tags, strings.TrimSuffix(text, "\n"))
		}
	}
	return tags
}

// finish sends a small message after its recipients.
func finish(t testing.TB, c *harness.Client, subject string) string {
	t.Helper()
	c.Want(t, "DATA", "354")
	if _, err := c.Write(harness.DotStuff([]byte(harness.SmallMessage("a@clean.example", subject)))); err != nil {
		t.Fatal(err)
	}
	reply, err := c.Reply()
	if err != nil {
		t.Fatal(err)
	}
	return reply
}
