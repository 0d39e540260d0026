package milter

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// Recipients, by what the gate does for them.
const you, me, abuse, postmaster = "you@example.net", "me@example.net", "abuse@example.net", "postmaster@example.net"

const (
	refused = "550 5.7.1 <a@reject.example> refused: list blocked (100% bulk mail); id ID"
	later   = "451 4.7.1 <a@defer.example> refused: list later; id ID"
	tag     = "X-Spamgate: listed; list=marked; reason=unsure"
)

// mails are sent to each mail server over one connection.
var mails = []struct {
	name   string
	from   string
	to     []string
	header string   // besides Subject, which is the name
	rcpt   []string // the replies to RCPT; "" for 250
	end    string   // the reply to the message; "" for 250, "-" if it is not sent
	got    []string // who receives it
	tags   int      // fields of the gate
}{
	{name: "clean", from: "a@clean.example", to: []string{you}, header: "From: a@clean.example\n", got: []string{you}},
	{name: "listed", from: "a@reject.example", to: []string{you, me}, rcpt: []string{refused, refused}, end: "-"},
	{name: "postmaster", from: "a@reject.example", to: []string{you, postmaster, abuse}, header: "From: a@reject.example\n",
		rcpt: []string{refused, "", ""}, got: []string{postmaster, abuse}},
	{name: "deferred", from: "a@defer.example", to: []string{you}, rcpt: []string{later}, end: "-"},
	{name: "header", from: "a@clean.example", to: []string{you}, header: "From: Ann <a@reject.example>\n", end: refused},
	{name: "folded", from: "a@clean.example", to: []string{you}, header: "Sender: b@clean.example\nFrom: \"Ann\n at home\"\n\t<a@reject.example>\nX-Last: x\n", end: refused},
	{name: "later header", from: "a@clean.example", to: []string{you, postmaster}, header: "Reply-To: a@defer.example\n",
		end: later + "; not for <you@example.net>, send it to the others alone"},
	{name: "exempt header", from: "a@clean.example", to: []string{postmaster}, header: "From: a@reject.example\n", got: []string{postmaster}},
	{name: "tagged", from: "a@tag.example", to: []string{you, me}, header: "From: a@clean.example\n", got: []string{you, me}, tags: 1},
	{name: "tagged header", from: "a@clean.example", to: []string{you}, header: "From: a@tag.example\nX-Last: x\n", got: []string{you}, tags: 1},
	{name: "discarded", from: "a@discard.example", to: []string{you, me}, header: "From: a@clean.example\n"},
	{name: "partly discarded", from: "a@discard.example", to: []string{you, abuse, me}, header: "From: a@tag.example\n", got: []string{abuse}, tags: 1},
	{name: "header discarded", from: "a@clean.example", to: []string{you, abuse}, header: "From: a@discard.example\n", got: []string{abuse}},
	{name: "bounce", from: "", to: []string{you}, header: "From: a@reject.example\n", got: []string{you}},
	{name: "cleared", from: "cleared@reject.example", to: []string{you}, header: "From: a@reject.example\n", got: []string{you}},
	{name: "large header", from: "a@clean.example", to: []string{you}, header: strings.Repeat("X-Long: "+strings.Repeat("x", 90)+"\n", 100),
		end: "552 5.3.4 Header section larger than 8192 bytes"},
	{name: "route", from: "@relay.example:a@clean.example", to: []string{you}, rcpt: []string{"553 5.1.7 Sender address not understood; id ID"}, end: "-"},
	{name: "last", from: "a@clean.example", to: []string{you}, got: []string{you}},
}

// TestServers sends the same mail through each mail server with each version of the protocol.
func TestServers(t *testing.T) {
	for _, c := range []struct {
		name  string
		start func(t testing.TB, milter string) mailServer
	}{
		{"postfix-6", func(t testing.TB, milter string) mailServer { return startPostfix(t, milter) }},
		{"postfix-2", func(t testing.TB, milter string) mailServer {
			return startPostfix(t, milter, "milter_protocol = 2")
		}},
		{"postfix-3", func(t testing.TB, milter string) mailServer {
			return startPostfix(t, milter, "milter_protocol = 3")
		}},
		{"postfix-4", func(t testing.TB, milter string) mailServer {
			return startPostfix(t, milter, "milter_protocol = 4")
		}},
		{"sendmail", func(t testing.TB, milter string) mailServer { return startSendmail(t, milter, "T") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g, milter := startGate(t, "")
			server := c.start(t, milter)
			client := harness.MustDial(t, server.addr)
			client.Want(t, "EHLO client.example", "250")
			sent := 0
			for _, m := range mails {
				client.Want(t, "MAIL FROM:<"+m.from+">", "250")
				for i, to := range m.to {
					want := "250"
					if m.rcpt != nil && m.rcpt[i] != "" {
						want = m.rcpt[i]
					}
					wantReply(t, client, m.name, "RCPT TO:<"+to+">", want)
				}
				if m.end == "-" {
					client.Want(t, "RSET", "250")
					continue
				}
				client.Want(t, "DATA", "354")
				message := fmt.Sprintf("Subject: %s\n%s\nThe body: x@reject.example\n.", m.name, m.header)
				wantReply(t, client, m.name, strings.ReplaceAll(message, "\n", "\r\n"), orElse(m.end, "250"))
				if len(m.got) > 0 {
					sent++
				}
			}
			client.Want(t, "QUIT", "221")
			checkDelivered(t, server.settle(t, sent))
			checkLog(t, g, server)
		})
	}
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

var someID = regexp.MustCompile(`\bid [A-Z2-7]{12}\b`)

// prefixed is what Sendmail puts before the text of the reply to RCPT.
var prefixed = regexp.MustCompile(`^([0-9. ]+ )<[^>]*>\.\.\. `)

// wantReply sends a line, and checks the reply but for the id in it.
func wantReply(t testing.TB, c *harness.Client, name, line, want string) {
	t.Helper()
	reply, err := c.Ask(line)
	reply = prefixed.ReplaceAllString(someID.ReplaceAllString(strings.TrimSpace(reply), "id ID"), "$1")
	if err != nil || reply != want && (want != "250" || !strings.HasPrefix(reply, want)) {
		t.Errorf("%s: %.60q: %q, %v; want %q", name, line, reply, err, want)
	}
}

// checkDelivered checks who has received what.
func checkDelivered(t *testing.T, got []smtptest.Message) {
	t.Helper()
	for _, m := range mails {
		var to []string
		for _, message := range got {
			head, _, _ := strings.Cut(string(message.Body), "\r\n\r\n")
			if !strings.Contains(head+"\r\n", "Subject: "+m.name+"\r\n") {
				continue
			}
			for _, rcpt := range message.Rcpts {
				address, _, _ := strings.Cut(strings.TrimPrefix(strings.ToLower(rcpt), "rcpt to:<"), ">")
				to = append(to, address)
			}
			if n := strings.Count(head, "X-Spamgate:"); n != m.tags {
				t.Errorf("%s: %d tags, want %d:\n%s", m.name, n, m.tags, head)
			}
			if m.tags > 0 && strings.LastIndex(head, "\r\n"+tag) < strings.LastIndex(head, "\r\nSubject: ") {
				t.Errorf("%s: the tag is not at the end:\n%s", m.name, head)
			}
		}
		slices.Sort(to)
		want := slices.Sorted(slices.Values(m.got))
		if !slices.Equal(to, want) {
			t.Errorf("%s: received by %q, want %q", m.name, to, want)
		}
	}
}

// checkLog checks that the log has the mail server's queue ids.
func checkLog(t *testing.T, g *harness.Gate, server mailServer) {
	t.Helper()
	g.WaitRecord("accepted", "to", "<"+you+">", "helo", "client.example")
	accepted := g.Records("accepted", "listener", "beside", "door", "milter")
	if len(accepted) == 0 {
		t.Fatal("no message is in the log")
	}
	for _, r := range accepted {
		if id := r.Text("queue_id"); id == "" || !strings.Contains(server.log(), id) {
			t.Errorf("the queue id %q is not the mail server's: %v", id, r)
		}
		if !strings.HasPrefix(r.Text("client"), "127.") {
			t.Errorf("the client is %q", r.Text("client"))
		}
	}
}
