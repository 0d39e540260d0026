package e2e

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// forms are the lines of a file in testdata that are no comments: odd ways to
// write an address.
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

// expandBytes puts bytes in the place of \xNN, and one \ in that of two.
func expandBytes(s string) string {
	return escape.ReplaceAllStringFunc(s, func(e string) string {
		if e == `\\` {
			return `\`
		}
		b, _ := strconv.ParseUint(e[2:], 16, 8)
		return string([]byte{byte(b)})
	})
}

// A formSender sends messages whose envelopes are odd.
type formSender struct {
	t    testing.TB
	addr string

	// proxied is the client's address that the PROXY protocol tells, "" where it
	// is not spoken.
	proxied string

	id int
}

// send sends one small message with arguments of MAIL and RCPT, on a connection
// of its own, and returns the last reply.
func (f *formSender) send(mail, rcpt string) string {
	f.t.Helper()
	c, err := connect(f.addr)
	if err != nil {
		f.t.Fatal(err)
	}
	defer c.Close()
	if f.proxied != "" {
		fmt.Fprintf(c, "PROXY TCP4 %s 127.0.0.1 4711 25\r\n", f.proxied)
	}
	reply, err := c.reply()
	if err != nil || !strings.HasPrefix(reply, "220") {
		f.t.Fatalf("greeting %q, %v", reply, err)
	}
	f.id++
	for _, line := range []string{"EHLO client.example", "MAIL FROM:" + mail, "RCPT TO:" + rcpt, "DATA", fmt.Sprintf("Subject: form %d\r\n\r\n.", f.id)} {
		if reply, err = c.ask(line); err != nil || reply[0] > '3' {
			break
		}
	}
	return reply
}

var queuedAs = regexp.MustCompile(`queued as ([0-9A-Za-z]+)`)

// envelopeFrom is the sender of a message in Postfix's log, found by the reply to
// the message.
func (p *postfix) envelopeFrom(reply string) string {
	p.t.Helper()
	m := queuedAs.FindStringSubmatch(reply)
	if m == nil {
		p.t.Fatalf("no queue id in %q", reply)
	}
	line := p.waitLog(1, "qmgr", m[1]+": from=<")
	_, from, _ := strings.Cut(line, "from=<")
	return from[:strings.LastIndex(from, ">, size=")]
}

// plain is an address without the quotes that it may not need, and without the
// dot behind its domain: Postfix logs quotes where they are needed and no dot, the
// gate what the client has written.
func plain(address string) string {
	address = strings.TrimSuffix(address, ".")
	at := strings.LastIndexByte(address, '@')
	if at < 1 || address[0] != '"' {
		return address
	}
	local := regexp.MustCompile(`\\(.)`).ReplaceAllString(address[1:at-1], "$1")
	return local + address[at:]
}

// TestSenderForms sends mail with every odd reverse-path to Postfix: the sender
// that the gate judges is the one that Postfix sees.
func TestSenderForms(t *testing.T) {
	t.Parallel()
	p := startPostfix(t, everywhere)
	g := startGate(t, setup{nextHop: "smtp://" + p.addr})
	checkSenderForms(t, p, g, &formSender{t: t, addr: g.addr})
}

// checkSenderForms sends every form through a gate to Postfix, and compares the
// senders that both have logged.
func checkSenderForms(t *testing.T, p *postfix, g *gate, through *formSender) {
	t.Helper()
	taken := 0
	for _, form := range forms(t, "senders.txt") {
		reply := through.send(form, "<"+mailbox+">")
		if !strings.HasPrefix(reply, "250") {
			continue
		}
		taken++
		id := queuedAs.FindString(reply)
		r := parseRecord(g.log.wait(id, func(line string) bool { return strings.Contains(line, id) }))
		judged := strings.TrimSuffix(strings.TrimPrefix(r.string("from"), "<"), ">")
		if from := p.envelopeFrom(reply); plain(judged) != plain(from) {
			t.Errorf("MAIL FROM:%q: the gate judged <%s>, Postfix has <%s>", form, judged, from)
		}
	}
	if all := len(forms(t, "senders.txt")); all < 100 || taken < all/4 {
		t.Errorf("%d forms were sent, %d taken: the test does not test much", all, taken)
	}
	t.Logf("%d of %d forms were taken", taken, len(forms(t, "senders.txt")))
}

// TestListedSenderForms lists every sender that Postfix makes of an odd form
// which it is sent directly: no form gets any of them past the gate.
func TestListedSenderForms(t *testing.T) {
	t.Parallel()
	p := startPostfix(t, everywhere)
	direct := &formSender{t: t, addr: p.addr}
	seen := map[string]string{} // Postfix's sender, by the form
	list := []string{}
	for _, form := range forms(t, "senders.txt") {
		reply := direct.send(form, "<"+mailbox+">")
		if !strings.HasPrefix(reply, "250") {
			continue
		}
		from := p.envelopeFrom(reply)
		if strings.Contains(from, "*") {
			continue // no entry of a list may be this address
		}
		seen[form] = from
		list = append(list, "<"+from+">")
	}
	slices.Sort(list)
	g := startGate(t, setup{nextHop: "smtp://" + p.addr, files: map[string]string{
		"blocked.txt": strings.Join(slices.Compact(list), "\n") + "\n",
	}})
	through := &formSender{t: t, addr: g.addr}
	for form, from := range seen {
		if reply := through.send(form, "<"+mailbox+">"); !strings.HasPrefix(reply, "5") {
			t.Errorf("MAIL FROM:%q is <%s> to Postfix, which is listed; the gate said %q", form, from, reply)
		}
	}
	t.Logf("Postfix took %d forms", len(seen))
}

// relayingPostfix trusts every client to send mail to anywhere, and reads routes
// in the local parts of its own domain. What it relays is dropped, as is what it
// does not, for its address literals among others.
func relayingPostfix(t testing.TB, more ...string) *postfix {
	t.Helper()
	return startPostfix(t, everywhere, append([]string{
		"mydestination = example.org",
		"virtual_mailbox_domains =",
		"local_transport = discard:here",
		"default_transport = discard:elsewhere",
		"allow_untrusted_routing = yes",
	}, more...)...)
}

// relayed are the recipients elsewhere that Postfix has taken mail for.
func relayed(t testing.TB, p *postfix) []string {
	t.Helper()
	settledPostfix(t, p)
	var to []string
	for _, line := range p.logLines("postfix/discard", " to=<", "(elsewhere)") {
		_, address, _ := strings.Cut(line, " to=<")
		to = append(to, address[:strings.Index(address, ">, ")])
	}
	return to
}

// TestRelayForms asks for recipients elsewhere in every odd way. A Postfix that
// trusts its clients relays for many of them; behind a gate that knows its
// domains it relays for none.
func TestRelayForms(t *testing.T) {
	t.Parallel()
	rcpts := forms(t, "relays.txt")
	t.Run("direct", func(t *testing.T) {
		t.Parallel()
		p := relayingPostfix(t)
		direct := &formSender{t: t, addr: p.addr}
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
		g := startGate(t, setup{nextHop: "smtp://" + p.addr, more: "[policy]\nrecipient_domains = [\"example.org\"]\n"})
		wantNoRelay(t, p, g, &formSender{t: t, addr: g.addr}, rcpts)
	})
}

// wantNoRelay sends to every form through a gate, which it stops.
func wantNoRelay(t *testing.T, p *postfix, g *gate, through *formSender, rcpts []string) {
	t.Helper()
	if reply := through.send("<a@example.com>", "<"+mailbox+">"); !strings.HasPrefix(reply, "250") {
		t.Errorf("its own recipient was answered with %q", reply)
	}
	for _, rcpt := range rcpts {
		if reply := through.send("<a@example.com>", rcpt); strings.HasPrefix(reply, "250") {
			t.Logf("RCPT TO:%q was taken: %q", rcpt, reply)
		}
	}
	g.stop()
	if to := relayed(t, p); len(to) > 0 {
		t.Errorf("relayed to %q", to)
	}
}
