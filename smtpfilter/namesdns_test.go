package smtpfilter_test

import (
	"bufio"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter/clientname"
	"spamgate/smtpfilter/clientname/dnstest"
	"spamgate/smtpfilter/nexthop"
)

// namedClient is an address on loopback that is in no hosts file.
const namedClient = "127.9.8.7"

// namesGate is a gate, the mail server after it, and the name server that it asks.
type namesGate struct {
	*gate
	sink *smtptest.Sink
	dns  *dnstest.Server
}

// newNamesGate starts a gate, a name server and a mail server that offers some extensions.
func newNamesGate(t *testing.T, o gateOptions, offers ...string) namesGate {
	t.Helper()
	g := namesGate{sink: smtptest.NewSink(t, smtptest.Config{Extensions: offers}), dns: dnstest.New(t, "127.0.0.1:0")}
	g.dns.AddHost("client.test", namedClient, 300)
	target, err := nexthop.NewSMTP(nexthop.SMTPConfig{Addr: g.sink.Addr(), Hostname: "gate.example", ProbeInterval: -1, Reuse: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := target.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	names := clientname.New(g.dns.Dial)
	t.Cleanup(names.Close)
	o.target, o.names = target, names
	g.gate = newGate(t, o)
	return g
}

// dial connects as namedClient.
func (g namesGate) dial(t *testing.T) *client {
	t.Helper()
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(namedClient)}}).Dial("tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(waitLimit))
	return &client{t, conn, bufio.NewReader(conn)}
}

// told returns how often the mail server received a name.
func (g namesGate) told(name string) (n int) {
	for _, c := range g.sink.Commands() {
		if strings.HasPrefix(c.Line, "X") && slices.Contains(strings.Fields(c.Line), "NAME="+name) {
			n++
		}
	}
	return n
}

// mail sends a message on its own connection.
func (g namesGate) mail(t *testing.T) {
	t.Helper()
	c := g.dial(t)
	c.reply("220")
	c.send("EHLO client.example\r\n")
	c.reply("250")
	c.mailToData("a@example.com")
	c.send("x: y\r\n.\r\n")
	c.reply("250")
	c.send("QUIT\r\n")
	c.reply("221")
}

// TestNameAskedOnce wants several connections of one client to cause one DNS query, and
// the mail server to receive the name for each.
func TestNameAskedOnce(t *testing.T) {
	for _, offer := range []string{"XFORWARD NAME ADDR", "XCLIENT NAME ADDR"} {
		g := newNamesGate(t, gateOptions{}, offer)
		const mails = 20
		for range mails {
			g.mail(t)
		}
		want := []string{"PTR 7.8.9.127.in-addr.arpa. udp", "A client.test. udp"}
		if asked := g.dns.Asked(); !slices.Equal(asked, want) {
			t.Errorf("%s: asked %q, want %q", offer, asked, want)
		}
		if told := g.told("client.test"); told == 0 || offer[1] == 'F' && told != mails {
			t.Errorf("%s: the name was told %d times for %d messages", offer, told, mails)
		}
	}
}

// TestNameNotWanted wants no DNS query if the mail server does not want names or they are
// switched off. The server must receive that the client has no name.
func TestNameNotWanted(t *testing.T) {
	g := newNamesGate(t, gateOptions{}, "XCLIENT ADDR", "XFORWARD ADDR")
	g.mail(t)
	if asked := g.dns.Asked(); len(asked) != 0 {
		t.Errorf("nobody wants the name: asked %q", asked)
	}
	g = newNamesGate(t, gateOptions{noNames: true}, "XFORWARD NAME ADDR")
	g.mail(t)
	if asked, told := g.dns.Asked(), g.told("[UNAVAILABLE]"); len(asked) != 0 || told != 1 {
		t.Errorf("without lookups: asked %q, and told %d times that there is no name", asked, told)
	}
}

// TestNameAskedEarly wants the DNS query during the client's first commands; only what the
// mail server receives with the name waits for the answer.
func TestNameAskedEarly(t *testing.T) {
	g := newNamesGate(t, gateOptions{}, "XFORWARD NAME ADDR")
	hold := make(chan struct{})
	g.dns.Behave(dnstest.Behavior{Hold: hold})
	c := g.dial(t)
	c.reply("220")
	c.send("EHLO client.example\r\n")
	c.reply("250")
	g.dns.Wait(t.Context(), t, 1)
	c.send("MAIL FROM:<a@example.com>\r\n")
	c.reply("250")
	c.send("RCPT TO:<b@example.net>\r\n")
	close(hold)
	c.reply("250")
	if told := g.told("client.test"); told != 1 {
		t.Errorf("the name was told %d times", told)
	}
}

// TestNameServerSilent wants a name server that does not answer to delay mail for its
// timeout only, and only the first message.
func TestNameServerSilent(t *testing.T) {
	t.Parallel()
	g := newNamesGate(t, gateOptions{}, "XFORWARD NAME ADDR")
	g.dns.Behave(dnstest.Behavior{Hold: make(chan struct{})})
	g.mail(t)
	asked := len(g.dns.Asked())
	g.mail(t)
	if again := len(g.dns.Asked()) - asked; asked == 0 || again != 0 || g.told("[UNAVAILABLE]") != 2 {
		t.Errorf("asked %d times, then %d; told %d times that there is no name", asked, again, g.told("[UNAVAILABLE]"))
	}
}
