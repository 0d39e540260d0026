package addresses

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// forms returns the odd ways to write an address in a file of testdata: its lines that
// are not comments.
func forms(t testing.TB, file string) []string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(data)) {
		if line[0] != '#' {
			all = append(all, expandBytes(strings.TrimSuffix(line, "\n")))
		}
	}
	return all
}

var escape = regexp.MustCompile(`\\(\\|x[0-9a-f]{2})`)

// expandBytes replaces \xNN with the byte, and \\ with one backslash.
func expandBytes(s string) string {
	return escape.ReplaceAllStringFunc(s, func(e string) string {
		if e == `\\` {
			return `\`
		}
		b, _ := strconv.ParseUint(e[2:], 16, 8)
		return string([]byte{byte(b)})
	})
}

// A formSender sends messages with odd envelopes.
type formSender struct {
	t    testing.TB
	addr string

	// proxied is the client's address in a PROXY header, or "" for no header.
	proxied string

	id int
}

// send sends a small message with those arguments of MAIL and RCPT on its own
// connection, and returns the last reply.
func (f *formSender) send(mail, rcpt string) string {
	f.t.Helper()
	c, err := harness.Connect(f.addr)
	if err != nil {
		f.t.Fatal(err)
	}
	defer c.Close()
	if f.proxied != "" {
		fmt.Fprintf(c, "PROXY TCP4 %s 127.0.0.1 4711 25\r\n", f.proxied)
	}
	reply, err := c.Reply()
	if err != nil || !strings.HasPrefix(reply, "220") {
		f.t.Fatalf("greeting %q, %v", reply, err)
	}
	f.id++
	for _, line := range []string{"EHLO client.example", "MAIL FROM:" + mail, "RCPT TO:" + rcpt, "DATA", fmt.Sprintf("Subject: form %d\r\n\r\n.", f.id)} {
		if reply, err = c.Ask(line); err != nil || reply[0] > '3' {
			break
		}
	}
	return reply
}

var queuedAs = regexp.MustCompile(`queued as ([0-9A-Za-z]+)`)

// envelopeFrom returns the sender in Postfix's log of the message with that reply.
func envelopeFrom(p *harness.Postfix, reply string) string {
	p.T.Helper()
	m := queuedAs.FindStringSubmatch(reply)
	if m == nil {
		p.T.Fatalf("no queue id in %q", reply)
	}
	line := p.WaitLog(1, "qmgr", m[1]+": from=<")
	_, from, _ := strings.Cut(line, "from=<")
	return from[:strings.LastIndex(from, ">, size=")]
}

// plain returns an address without quotes that it may not need, and without the dot
// after its domain. Postfix logs quotes only if they are needed, and no dot; the gate
// logs what the client has written.
func plain(address string) string {
	address = strings.TrimSuffix(address, ".")
	pos := strings.LastIndexByte(address, '@')
	if pos < 1 || address[0] != '"' {
		return address
	}
	local := regexp.MustCompile(`\\(.)`).ReplaceAllString(address[1:pos-1], "$1")
	return local + address[pos:]
}

// TestSenderForms sends mail with every odd reverse-path to Postfix. The sender that the
// gate judges is the one that Postfix sees.
func TestSenderForms(t *testing.T) {
	t.Parallel()
	p := harness.StartPostfix(t, harness.Everywhere)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + p.Addr})
	checkSenderForms(t, p, g, &formSender{t: t, addr: g.Addr})
}

// checkSenderForms sends every form through a gate to Postfix, and compares the senders
// in both logs.
func checkSenderForms(t *testing.T, p *harness.Postfix, g *harness.Gate, through *formSender) {
	t.Helper()
	taken := 0
	for _, form := range forms(t, "senders.txt") {
		reply := through.send(form, "<"+harness.Mailbox+">")
		if !strings.HasPrefix(reply, "250") {
			continue
		}
		taken++
		id := queuedAs.FindString(reply)
		r := harness.ParseRecord(g.Log.Wait(id, func(line string) bool { return strings.Contains(line, id) }))
		judged := strings.TrimSuffix(strings.TrimPrefix(r.Text("from"), "<"), ">")
		if from := envelopeFrom(p, reply); plain(judged) != plain(from) {
			t.Errorf("MAIL FROM:%q: the gate judged <%s>, Postfix has <%s>", form, judged, from)
		}
	}
	if all := len(forms(t, "senders.txt")); all < 100 || taken < all/4 {
		t.Errorf("%d forms were sent, %d taken: the test does not test much", all, taken)
	}
	t.Logf("%d of %d forms were taken", taken, len(forms(t, "senders.txt")))
}

// TestListedSenderForms sends Postfix every odd form directly and lists the senders that
// it makes of them. Then no form passes the gate.
func TestListedSenderForms(t *testing.T) {
	t.Parallel()
	p := harness.StartPostfix(t, harness.Everywhere)
	direct := &formSender{t: t, addr: p.Addr}
	seen := map[string]string{} // Postfix's sender, by form
	list := []string{}
	for _, form := range forms(t, "senders.txt") {
		reply := direct.send(form, "<"+harness.Mailbox+">")
		if !strings.HasPrefix(reply, "250") {
			continue
		}
		from := envelopeFrom(p, reply)
		if strings.Contains(from, "*") {
			continue // this address cannot be an entry
		}
		seen[form] = from
		list = append(list, "<"+from+">")
	}
	slices.Sort(list)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + p.Addr, Files: map[string]string{
		"blocked.txt": strings.Join(slices.Compact(list), "\n") + "\n",
	}})
	through := &formSender{t: t, addr: g.Addr}
	for form, from := range seen {
		if reply := through.send(form, "<"+harness.Mailbox+">"); !strings.HasPrefix(reply, "5") {
			t.Errorf("MAIL FROM:%q is <%s> to Postfix, which is listed; the gate said %q", form, from, reply)
		}
	}
	t.Logf("Postfix took %d forms", len(seen))
}

// relayingPostfix starts a Postfix that lets every client relay, and reads routes in the
// local parts of its own domain. It discards all mail, and its log tells which mail it
// would have relayed.
func relayingPostfix(t testing.TB, more ...string) *harness.Postfix {
	t.Helper()
	return harness.StartPostfix(t, harness.Everywhere, append([]string{
		"mydestination = example.org",
		"virtual_mailbox_domains =",
		"local_transport = discard:here",
		"default_transport = discard:elsewhere",
		"allow_untrusted_routing = yes",
	}, more...)...)
}

// relayed returns the recipients in other domains that Postfix has taken mail for.
func relayed(t testing.TB, p *harness.Postfix) []string {
	t.Helper()
	harness.SettledPostfix(t, p)
	var to []string
	for _, line := range p.LogLines("postfix/discard", " to=<", "(elsewhere)") {
		_, address, _ := strings.Cut(line, " to=<")
		to = append(to, address[:strings.Index(address, ">, ")])
	}
	return to
}

// TestRelayForms writes recipients in other domains in every odd way. A Postfix that
// trusts its clients relays for many of them. After a gate that knows its domains it
// relays for none.
func TestRelayForms(t *testing.T) {
	t.Parallel()
	rcpts := forms(t, "relays.txt")
	t.Run("direct", func(t *testing.T) {
		t.Parallel()
		p := relayingPostfix(t)
		direct := &formSender{t: t, addr: p.Addr}
		for _, rcpt := range rcpts {
			direct.send("<a@example.com>", rcpt)
		}
		to := relayed(t, p)
		if len(to) < 20 {
			t.Errorf("Postfix relayed %d forms, want 20 that are worth trying", len(to))
		}
		t.Logf("Postfix relayed to %q", to)
	})
	t.Run("recipient domains", func(t *testing.T) {
		t.Parallel()
		p := relayingPostfix(t)
		g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + p.Addr, Tables: "[policy]\nrecipient_domains = [\"example.org\"]\n"})
		wantNoRelay(t, p, g, &formSender{t: t, addr: g.Addr}, rcpts)
	})
}

// wantNoRelay sends mail to every form through a gate, stops the gate, and checks that
// Postfix has relayed nothing.
func wantNoRelay(t *testing.T, p *harness.Postfix, g *harness.Gate, through *formSender, rcpts []string) {
	t.Helper()
	if reply := through.send("<a@example.com>", "<"+harness.Mailbox+">"); !strings.HasPrefix(reply, "250") {
		t.Errorf("its own recipient was answered with %q", reply)
	}
	for _, rcpt := range rcpts {
		if reply := through.send("<a@example.com>", rcpt); strings.HasPrefix(reply, "250") {
			t.Logf("RCPT TO:%q was taken: %q", rcpt, reply)
		}
	}
	g.Stop()
	if to := relayed(t, p); len(to) > 0 {
		t.Errorf("relayed to %q", to)
	}
}
