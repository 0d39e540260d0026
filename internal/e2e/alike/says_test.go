package alike

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// saysTables are the tables of a gate whose recipients have a say, and whose lists want
// proofs. They have the gate's resolver and mixed_headers.
const saysTables = `
[policy]
allow_discard = true
contact = "see https://mx.example.org/refused"
mixed_headers = %[2]q
[resolver]
addr = [%[1]q]
[[policy_service]]
name = "policy"
addr = "127.0.0.1:0"
[[milter]]
name = "milter"
addr = "127.0.0.1:0"
[[recipient_policy]]
match = ["open@example.org"]
exempt = true
[[recipient_policy]]
match = ["mild@example.org"]
max_action = "tag"
[[recipient_policy]]
match = ["watch@example.org"]
mode = "monitor"
[[recipient_policy]]
match = ["few@example.org"]
lists = ["later", "partners", "own", "marked"]
`

// saysLists are its lists: one for each action, two for recipients, and three whose entries
// count only if a sender is proven.
const saysLists = lists + `
[[list]]
name = "partners"
path = "partners.txt"
type = "allow"
proven_by = ["spf", "dkim"]
[[list]]
name = "by-spf"
path = "by-spf.txt"
type = "allow"
proven_by = ["spf"]
[[list]]
name = "by-dkim"
path = "by-dkim.txt"
type = "allow"
override = true
proven_by = ["dkim"]
[[list]]
name = "own"
path = "own.txt"
per_recipient = true
[[list]]
name = "wanted"
path = "wanted.txt"
type = "allow"
per_recipient = true
`

// saysFiles are the lists.
func saysFiles() map[string]string {
	all := map[string]string{
		"partners.txt": "partner.example\npress@temp.example\nboss@late.example\n",
		"by-spf.txt":   "spf.example\n",
		"by-dkim.txt":  "dkim.example\n",
		"own.txt":      "ann@example.org  news.example  # ann asked\n@example.org  pest.example  # nobody wants it\nopen@example.org  loud.example\n",
		"wanted.txt":   "ann@example.org  a@reject.example\n@example.org  friend@pest.example\n",
	}
	for name, text := range files {
		all[name] = text
	}
	all["blocked.txt"] += "partner.example  # forged a lot\nspf.example\ndkim.example\ntemp.example\n"
	all["later.txt"] += "late.example\n"
	return all
}

// Clients: for the domains of zone, SPF passes for the first and fails for the second.
const good, bad = "198.51.100.10", "198.51.100.66"

// saysRecipients are those of one message each. ann and all of example.org have entries of
// their own, the others have a policy.
var saysRecipients = [][]string{
	{"you@example.org"},
	{"ann@example.org"},
	{"you@example.org", "ann@example.org"},
	{"mild@example.org", "you@example.org"},
	{"few@example.org", "mild@example.org"},
	{"watch@example.org", "few@example.org", "you@example.org"},
	{"open@example.org", "ann@example.org", "she@example.org"},
	{"mild@example.org", "watch@example.org", "open@example.org", "ann@example.org", "you@example.org", "you@elsewhere.example"},
}

// saysSenders are judged in the envelope, and in the header.
var saysSenders = []string{
	"a@clean.example", "a@reject.example", "a@defer.example", "a@discard.example", "a@tag.example", "a@watched.example", "a@softer.example",
	"a@news.example", "a@pest.example", "friend@pest.example", "a@loud.example", "a@partner.example", "cleared@reject.example",
	"SRS0=hhh=tt=reject.example=a@clean.example", "srs1=hhh=clean.example==hhh=tt=tag.example=a@other.example",
	"prvs=1234abcdef=a@defer.example", "SRS0=hhh=tt=news.example=a@clean.example", "SRS0=hhh=tt=partner.example=a@reject.example", "",
}

// saysCorpus returns messages to recipients with a say.
func saysCorpus(t testing.TB) []mail {
	var all []mail
	add := func(what, from string, rcpts []string, client, header, body string) {
		all = append(all, mail{what: what, helo: fmt.Sprintf("s%d.client.example", len(all)), from: from, rcpts: rcpts, client: client, header: header, body: body})
	}
	for _, s := range saysSenders {
		for _, rcpts := range saysRecipients {
			add("envelope", s, rcpts, good, headers[0], "")
			if s != "" {
				add("header", "a@clean.example", rcpts, good, "From: Ann <"+s+">\r\nSubject: x\r\n", "")
			}
		}
	}
	for _, m := range signedMail(t) {
		for _, rcpts := range [][]string{saysRecipients[0], saysRecipients[3], saysRecipients[6]} {
			for _, client := range []string{good, bad} {
				add(m.what+", client "+client, m.from, rcpts, client, m.header, m.body)
			}
		}
	}
	return all
}

// TestRecipientsAndProofsAlike sends messages to recipients with a say, and messages whose
// senders have to be proven, through the doors that mail passes. See docs/policy-service.md
// for what the policy service cannot know.
func TestRecipientsAndProofsAlike(t *testing.T) {
	for _, mixed := range []string{"refuse", "tag"} {
		t.Run(mixed, func(t *testing.T) {
			t.Parallel()
			sink := smtptest.NewSink(t, smtptest.Config{Replies: map[string]string{"GREETING": "220 " + nextHopName + " ESMTP"}})
			g := harness.StartGate(t, harness.Setup{
				NextHop: "smtp://" + sink.Addr(),
				Keys:    map[string]string{"listen": "max_connections = 0\n" + harness.AcceptProxy},
				Tables:  fmt.Sprintf(saysTables, startZone(t), mixed),
				Lists:   saysLists,
				Files:   saysFiles(),
			})
			e := &everyDoor{g, sink, saysCorpus(t), map[string]bool{}}
			proxy := &proxyClient{addr: g.Addr, sink: sink}
			text := map[string]*heard{}
			outcomes := map[string]int{}
			for _, m := range e.mail {
				text[m.helo] = proxy.send(t, m)
				outcomes[outcomeOf(text[m.helo])]++
			}
			proxy.delivered(text)
			t.Logf("%d messages: %v", len(e.mail), outcomes)
			e.milter(t, text)
			if late := slices.Collect(maps.Values(e.late)); !slices.Contains(late, true) {
				t.Error("no message shows what the milter does otherwise")
			}
			e.policyRecipients(t, text)
			g.Stop()
			e.logs(t, text)
		})
	}
}

// outcomeOf returns in short what became of a message.
func outcomeOf(h *heard) string {
	switch {
	case !h.passes():
		return "refused at RCPT"
	case h.end != "":
		return "refused " + h.end[:3]
	case slices.ContainsFunc(h.rcpts, func(r string) bool { return r != "" }):
		return "accepted for some"
	}
	return "accepted"
}

// policyRecipients compares the policy service with the proxy: the replies to the recipients.
func (e *everyDoor) policyRecipients(t *testing.T, text map[string]*heard) {
	c := dialPolicy(t, e.addr("policy"))
	for _, m := range e.mail {
		again := m
		again.helo = "p." + m.helo
		if got, want := c.send(t, again), text[m.helo]; !reflect.DeepEqual(got.rcpts, want.rcpts) {
			t.Errorf("%s: from <%s> to %q\nthe policy service: %q\nthe proxy: %q", m.what, m.from, m.rcpts, got.rcpts, want.rcpts)
		}
	}
}

// signedMail returns messages whose senders have to be proven: what, from, header and body.
func signedMail(t testing.TB) []mail {
	var all []mail
	add := func(what, from, header, body string) {
		all = append(all, mail{what: what, from: from, header: header, body: body})
	}
	for _, domain := range []string{"partner.example", "spf.example", "dkim.example"} {
		from := "From: Ann <a@" + domain + ">\r\nSubject: from a partner\r\n"
		body := "Hello,\r\n\r\nas we said.\r\n"
		signed := sign(t, domain, from, body)
		for _, path := range []string{"a@" + domain, "a@clean.example", ""} {
			to := domain + " by <" + path + ">"
			add("no signature of "+to, path, from, body)
			add("a signature of "+to, path, signed, body)
			add("a changed body of "+to, path, signed, body+"Buy now.\r\n")
			add("a changed header of "+to, path, strings.Replace(signed, "from a partner", "[list] from a partner", 1), body)
			add("a truncated body of "+to, path, signed, strings.TrimSuffix(body, "as we said.\r\n"))
			add("a signature of another than "+to, path, sign(t, "attacker.example", from, body), body)
			add("a signature of a part of "+to, path, sign(t, "mail."+domain, from, body), body)
			add("two From fields of "+to, path, "From: b@clean.example\r\n"+signed, body)
			add("a broken and a good signature of "+to, path, strings.Replace(sign(t, domain, from, body+"x\r\n"), from, "", 1)+signed, body)
			add("a signature with an unknown key of "+to, path, strings.Replace(signed, "s=ed;", "s=none;", 1), body)
		}
	}
	const late = "From: boss@late.example\r\n"
	add("a proof without an answer", "press@temp.example", headers[0], "")
	add("a proof without an answer, and a signature", "boss@late.example", sign(t, "late.example", late, ""), "")
	add("a long body", "a@partner.example", sign(t, "partner.example", late, longBody), longBody)
	return all
}

// longBody is longer than a packet of a milter.
var longBody = strings.Repeat("A line of a body, with a space at its end \r\n", 4000)
