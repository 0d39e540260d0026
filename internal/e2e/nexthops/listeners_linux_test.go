package nexthops

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// listenerTable returns a [[listener]] on a free port, with a next hop in TOML.
func listenerTable(name, hop string) string {
	return fmt.Sprintf("[[listener]]\nname = %q\naddr = \"127.0.0.1:0\"\nnext_hop = %s\n", name, hop)
}

// TestTwoPostfix has two Postfix servers: one for the mail of port 25, one for that of a
// [[listener]]. Each gets its own mail, and each client is offered what its server has.
func TestTwoPostfix(t *testing.T) {
	t.Parallel()
	mx := harness.StartPostfix(t, harness.Everywhere, "message_size_limit = 20000", "smtpd_authorized_xclient_hosts = 127.0.0.0/8")
	out := harness.StartPostfix(t, harness.Everywhere, "message_size_limit = 30000", "smtpd_discard_ehlo_keywords = dsn")
	g := harness.StartGate(t, harness.Setup{
		NextHop: "smtp://" + mx.Addr,
		Keys:    map[string]string{"next_hop": `identity = "xclient"`},
		Tables:  listenerTable("submission", fmt.Sprintf(`{ addr = "smtp://%s", identity = "none" }`, out.Addr)),
	})
	addrs := strings.Split(g.Addr, ",")
	for i, want := range []struct {
		server  *harness.Postfix
		size    string
		dsn     bool
		subject string
	}{{mx, "SIZE 20000", true, "for-mx"}, {out, "SIZE 30000", false, "for-out"}} {
		c := harness.MustDial(t, addrs[i])
		offers := c.Want(t, "EHLO client.example", "250")
		if !strings.Contains(offers, want.size) || strings.Contains(offers, "DSN") != want.dsn {
			t.Errorf("%s: offered %q", want.subject, offers)
		}
		c.MustSend(t, "a@example.com", harness.Mailbox, harness.SmallMessage("a@example.com", want.subject))
		c.Want(t, "QUIT", "221")
		if mail := want.server.OneMail(strings.Split(harness.Mailbox, "@")[0]); !strings.Contains(mail, want.subject) {
			t.Errorf("%s: the server got %q", want.subject, mail)
		}
	}
}

// hops are the servers of TestListenerHops.
type hops struct {
	*harness.Succession
	servers []*smtptest.Sink
}

// want sends a message to each listener, and checks which servers have got it in all: the
// names of the listeners, in order.
func (h *hops) want(t *testing.T, subject string, servers ...int) {
	t.Helper()
	addrs := strings.Split(h.Addr, ",")
	for i, server := range servers {
		before := len(h.servers[server].Messages())
		c := harness.MustDial(t, addrs[i])
		c.MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", subject))
		c.Want(t, "QUIT", "221")
		if got := h.servers[server].Messages(); len(got) != before+1 || !strings.Contains(string(got[before].Body), subject) {
			t.Errorf("%s: server %d has %d messages, %d before", subject, server, len(got), before)
		}
	}
}

// TestListenerHops runs listeners with next hops of their own through failover, reloads and
// a handover, with the metric of each server.
func TestListenerHops(t *testing.T) {
	t.Parallel()
	h := &hops{}
	for range 4 {
		h.servers = append(h.servers, smtptest.NewSink(t))
	}
	url := func(i int) string { return "smtp://" + h.servers[i].Addr() }
	s := harness.Setup{NextHop: url(0)}
	dir := t.TempDir()
	harness.WriteFile(t, filepath.Join(dir, "blocked.txt"), "spam.example\n")
	write := func(tables ...string) {
		s.Tables = strings.Join(tables, "")
		harness.WriteFile(t, filepath.Join(dir, "config.toml"), s.Config())
	}
	own := listenerTable("own", `"`+url(1)+`"`)
	several := listenerTable("several", fmt.Sprintf("[%q, %q]", url(2), url(1)))
	write(own, several)
	h.Succession = harness.LaunchSuccession(t, dir, nil, nil, harness.Binary(t), "serve")
	h.Addr = h.WaitListening()
	h.want(t, "first", 0, 1, 2)

	// A server that is down is replaced by the next one of its own listener only.
	h.servers[2].Close()
	h.want(t, "failover", 0, 1, 1)
	client := h.SocketClient()
	up := func(want map[int]float64) {
		t.Helper()
		for i, v := range want {
			harness.WaitFor(t, fmt.Sprintf("server %d: %v", i, v), func() bool {
				return harness.MetricValue(t, harness.ReadMetrics(t, client, "http://gate/metrics"), "spamgate_next_hop_up", "next_hop", url(i)) == v
			})
		}
	}
	up(map[int]float64{0: 1, 1: 1, 2: 0})

	reloads := 0
	reload := func() {
		t.Helper()
		h.Signal(syscall.SIGHUP)
		reloads++
		h.WaitNth(reloads, "reloaded")
	}
	// A reload changes one next hop. The connection to the other server stays.
	conns := h.servers[0].Conns()
	write(own, listenerTable("several", fmt.Sprintf("%q", url(3))))
	reload()
	h.want(t, "reloaded", 0, 1, 3)
	if n := h.servers[0].Conns(); n != conns {
		t.Errorf("%d connections to the first server, %d before the reload", n, conns)
	}
	// A broken next hop changes nothing.
	write(listenerTable("own", `"maildir:"`), listenerTable("several", `"smtp://127.0.0.1:1"`))
	h.Signal(syscall.SIGHUP)
	if why := h.WaitRecord("reload failed, nothing has changed").Text("error"); !strings.Contains(why, "listener.next_hop: ") {
		t.Error(why)
	}
	h.want(t, "not reloaded", 0, 1, 3)

	// Two listeners swap; one of them is no longer in the file and goes on.
	write(listenerTable("own", fmt.Sprintf("%q", url(3))))
	reload()
	h.want(t, "swapped", 0, 3, 3)
	write(listenerTable("own", fmt.Sprintf("%q", url(1))), strings.Replace(own, "own", "several", 1))
	reload()
	h.HandOver()
	h.want(t, "handed over", 0, 1, 1)
	h.Stop()
	h.WantEnded(2)
}

// TestListenerHopLoop has one listener's next hop lead back to the gate. Its clients get
// 554 5.4.6, the mail of the other listener passes, and a next hop that is the gate itself
// stops the start.
func TestListenerHopLoop(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	item, two := harness.FreeAddr(t), harness.FreeAddr(t)
	other := harness.StartGate(t, harness.Setup{Listen: two, NextHop: "smtp://" + item, Hostname: "two.example"})
	table := fmt.Sprintf("[[listener]]\nname = \"back\"\naddr = %q\nnext_hop = \"smtp://%s\"\n", item, other.Addr)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + sink.Addr(), Tables: table})
	good, back, _ := strings.Cut(g.Addr, ",")
	harness.MustDial(t, good).MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "m"))
	c := harness.MustDial(t, back)
	c.Want(t, "MAIL FROM:<a@example.com>", "250")
	c.Want(t, "RCPT TO:<b@example.net>", "554 5.4.6 Mail loop")
	if n := len(sink.Messages()); n != 1 {
		t.Errorf("%d messages", n)
	}

	own := harness.FreeAddr(t)
	self := harness.LaunchGate(t, harness.Setup{NextHop: "smtp://" + sink.Addr(),
		Tables: fmt.Sprintf("[[listener]]\naddr = %q\nnext_hop = \"smtp://%s\"\n", own, own)})
	if code := self.Wait(); code == 0 || !strings.Contains(self.Log.String(), "listener.next_hop: "+own+" is the gate itself") {
		t.Errorf("exit code %d, log %q", code, self.Log.String())
	}
}

// TestListenerHopsLMTP has two LMTP servers. What one has delivered the other has not: the
// gate tells a client only of deliveries to its own listener's server.
func TestListenerHopsLMTP(t *testing.T) {
	t.Parallel()
	var servers []*smtptest.Sink
	for range 2 {
		servers = append(servers, smtptest.NewSink(t, smtptest.Config{LMTP: true, Replies: map[string]string{
			". RCPT TO:<full@example.net>": "452 4.2.2 <full@example.net> mailbox full",
		}}))
	}
	g := harness.StartGate(t, harness.Setup{NextHop: "lmtp://" + servers[0].Addr(),
		Tables: listenerTable("other", fmt.Sprintf("%q", "lmtp://"+servers[1].Addr()))})
	addrs := strings.Split(g.Addr, ",")
	send := func(listener int, want string, to ...string) {
		t.Helper()
		c := harness.MustDial(t, addrs[listener])
		defer c.Close()
		c.Want(t, "MAIL FROM:<a@example.com>", "250")
		for _, rcpt := range to {
			c.Want(t, "RCPT TO:<"+rcpt+"@example.net>", "250")
		}
		c.Want(t, "DATA", "354")
		c.Want(t, harness.SmallMessage("a@example.com", "twice")+".", want)
	}
	send(0, "451 4.3.0 Delivered to 1 of 2 recipients", "b", "full")
	send(1, "250 2.", "b")
	send(0, "250 2.0.0 Ok: delivered before", "b")
	var got []int
	for _, s := range servers {
		got = append(got, len(s.Messages()))
	}
	if !slices.Equal(got, []int{1, 1}) {
		t.Errorf("%v messages, want one each", got)
	}
}
