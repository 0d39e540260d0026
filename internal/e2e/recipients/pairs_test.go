package recipients

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// outcome is what becomes of a message for a recipient alone.
type outcome struct {
	name string
	says string // of the recipient, in [[recipient_policy]]

	rcpt string // the reply to RCPT
	end  string // accept, tag, discard, or the reply to the message
}

// outcomes are what the lists can say of a sender for a recipient, before the header and in it.
var outcomes = []outcome{
	{"accept", `lists = ["nobody"]`, "250", "accept"},
	{"exempt", `exempt = true`, "250", "accept"},
	{"monitor", `lists = ["envelope-reject", "header-reject"]` + "\nmode = \"monitor\"", "250", "accept"},
	{"milder", `lists = ["envelope-reject", "header-reject"]` + "\nmax_action = \"tag\"", "250", "tag"},
	{"envelope-tag", `lists = ["envelope-tag"]`, "250", "tag"},
	{"envelope-discard", `lists = ["envelope-discard"]`, "250", "discard"},
	{"envelope-defer", `lists = ["envelope-defer"]`, "451", ""},
	{"envelope-reject", `lists = ["envelope-reject"]`, "550", ""},
	{"header-tag", `lists = ["header-tag"]`, "250", "tag"},
	{"header-discard", `lists = ["header-discard"]`, "250", "discard"},
	{"header-defer", `lists = ["header-defer"]`, "250", "451"},
	{"header-reject", `lists = ["header-reject"]`, "250", "550"},
}

// refused reports whether the message is refused for the recipient.
func (o outcome) refused() bool { return o.end == "451" || o.end == "550" }

// expect returns what the gate has to do with a message to recipients whose RCPT it has
// accepted: its reply, and for each recipient what is delivered: "" for nothing, "plain",
// "tagged", or "either" if only another recipient wants a tag.
func expect(mixed string, accepted []outcome) (reply string, delivered []string) {
	delivered = make([]string, len(accepted))
	has := func(match func(outcome) bool) bool { return slices.ContainsFunc(accepted, match) }
	refuses := has(outcome.refused)
	passes := has(func(o outcome) bool { return o.end == "accept" || o.end == "tag" })
	if refuses && (!passes || mixed == "refuse") {
		if has(func(o outcome) bool { return o.end == "550" }) {
			return "550", delivered
		}
		return "451", delivered
	}
	tagged := refuses || has(func(o outcome) bool { return o.end == "tag" })
	for i, o := range accepted {
		switch {
		case o.end == "discard":
		case refuses || o.end == "tag":
			delivered[i] = "tagged"
		case tagged:
			delivered[i] = "either"
		default:
			delivered[i] = "plain"
		}
	}
	return "250", delivered
}

// setup returns a gate whose recipients have two addresses for each outcome: "accept-0".
func setup(mixed, nextHop string) harness.Setup {
	s := harness.Setup{NextHop: nextHop, Files: map[string]string{"nobody.txt": "nobody.example\n"},
		Lists: "[[list]]\nname = \"nobody\"\npath = \"nobody.txt\"\n"}
	s.Tables = fmt.Sprintf("[headers]\ncheck = [\"From\"]\n[policy]\nallow_discard = true\nmixed_headers = %q\n", mixed)
	for _, stage := range []string{"envelope", "header"} {
		for _, action := range []string{"tag", "discard", "defer", "reject"} {
			name := stage + "-" + action
			s.Files[name+".txt"] = stage + ".example  # " + name + "\n"
			s.Lists += fmt.Sprintf("[[list]]\nname = %q\npath = %q\naction = %q\nstage = [%q]\n", name, name+".txt", action, stage)
		}
	}
	for _, o := range outcomes {
		s.Tables += fmt.Sprintf("[[recipient_policy]]\nname = %q\nmatch = [\"%[1]s-0@example.org\", \"%[1]s-1@example.org\"]\n%s\n", o.name, o.says)
	}
	return s
}

// user returns one of the two users with an outcome.
func (o outcome) user(i int) string { return fmt.Sprintf("%s-%d", o.name, i) }

// sendPairs sends a message for each pair of outcomes, and returns for each user what has to be
// in the mailbox: by subject, as [expect] says.
func sendPairs(t *testing.T, g *harness.Gate, mixed string) map[string]map[string]string {
	boxes := map[string]map[string]string{}
	c := harness.MustDial(t, g.Addr)
	for _, first := range outcomes {
		for _, second := range outcomes {
			pair, subject := []outcome{first, second}, first.name+"+"+second.name
			c.Want(t, "MAIL FROM:<a@envelope.example>", "250")
			var accepted []outcome
			var users []string
			for i, o := range pair {
				c.Want(t, "RCPT TO:<"+o.user(i)+"@example.org>", o.rcpt)
				if o.rcpt == "250" {
					accepted, users = append(accepted, o), append(users, o.user(i))
				}
			}
			if accepted == nil {
				c.Want(t, "RSET", "250")
				continue
			}
			c.Want(t, "DATA", "354")
			want, delivered := expect(mixed, accepted)
			reply := c.Want(t, "From: <boss@header.example>\r\nSubject: "+subject+"\r\n\r\nhello\r\n.", want)
			if len(reply) > 510 || strings.ContainsAny(reply, "\n") {
				t.Errorf("%s: more than a line: %s", subject, reply)
			}
			for i, user := range users {
				if boxes[user] == nil {
					boxes[user] = map[string]string{}
				}
				boxes[user][subject] = delivered[i]
			}
		}
	}
	return boxes
}

// compare compares what is in a mailbox with what has to be there.
func compare(t *testing.T, user string, want map[string]string, mailbox []string) {
	t.Helper()
	got := map[string]string{}
	for _, m := range mailbox {
		head, _, _ := strings.Cut(strings.ReplaceAll(m, "\r\n", "\n"), "\n\n")
		_, subject, _ := strings.Cut(head, "\nSubject: ")
		subject, _, _ = strings.Cut(subject, "\n")
		if got[subject] != "" {
			t.Errorf("%s has %s twice", user, subject)
		}
		got[subject] = "plain"
		if strings.Contains("\n"+head, "\nX-Spamgate: listed; ") {
			got[subject] = "tagged"
		}
	}
	for subject, w := range want {
		if g := got[subject]; g != w && !(w == "either" && g != "") {
			t.Errorf("%s, %s: %q, want %q", user, subject, g, w)
		}
		delete(got, subject)
	}
	for subject := range got {
		t.Errorf("%s has %s, which nobody sent there", user, subject)
	}
}

// TestPairs sends a message to every pair of recipients with different outcomes, through
// Postfix. What the client got 250 for is in the mailboxes, except what a list discards.
func TestPairs(t *testing.T) {
	t.Parallel()
	for _, mixed := range []string{"refuse", "tag"} {
		t.Run(mixed, func(t *testing.T) {
			t.Parallel()
			var mailboxes []string
			for _, o := range outcomes {
				for i := range 2 {
					mailboxes = append(mailboxes, fmt.Sprintf("%s@example.org=%[1]s/", o.user(i)))
				}
			}
			p := harness.StartPostfix(t, harness.Nowhere, "virtual_mailbox_maps = inline:{ "+strings.Join(mailboxes, " ")+" }")
			g := harness.StartGate(t, setup(mixed, "smtp://"+p.Addr))
			boxes := sendPairs(t, g, mixed)
			g.Stop()
			harness.SettledPostfix(t, p)
			for _, o := range outcomes {
				for i := range 2 {
					user := o.user(i)
					compare(t, user, boxes[user], harness.ReadAll(t, filepath.Join(p.Dir, "mail", user, "new")))
				}
			}
		})
	}
}

// TestPairsLMTP is TestPairs with a next hop that has a reply for each recipient.
func TestPairsLMTP(t *testing.T) {
	t.Parallel()
	for _, mixed := range []string{"refuse", "tag"} {
		t.Run(mixed, func(t *testing.T) {
			t.Parallel()
			sink := smtptest.NewSink(t, smtptest.Config{LMTP: true})
			g := harness.StartGate(t, setup(mixed, "lmtp://"+sink.Addr()))
			boxes := sendPairs(t, g, mixed)
			g.Stop()
			mail := map[string][]string{}
			for _, m := range sink.Messages() {
				for _, to := range m.Rcpts {
					user, _, _ := strings.Cut(strings.TrimPrefix(to, "RCPT TO:<"), "@")
					mail[user] = append(mail[user], string(m.Body))
				}
			}
			for user, want := range boxes {
				compare(t, user, want, mail[user])
			}
			harness.CheckSink(t, sink)
		})
	}
}
