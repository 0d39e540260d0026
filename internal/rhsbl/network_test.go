package rhsbl

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestNetwork asks over both transports, several times over one connection.
func TestNetwork(t *testing.T) {
	lists, _ := openStore(t, block("blocked", "spam.example\n"))
	addr := serve(t, newServer(t, lists, zonesOf()))
	for _, network := range []string{"udp", "tcp"} {
		c, err := dns.Dial(network, addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		client := dns.Client{Net: network}
		for range 3 {
			r, _, err := client.ExchangeWithConn(newQuestion("spam.example.bl.test", dns.TypeA), c)
			if err != nil || said(r) != "NOERROR 127.0.0.2" || !r.Authoritative || r.RecursionAvailable || !r.RecursionDesired {
				t.Errorf("%s: %v, %v", network, r, err)
			}
		}
	}
}

// dialTCP connects for a minute at most.
func dialTCP(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

// TestPipeline sends many questions at once, in pieces, over one connection. After one that
// is not a question, such as an answer, the connection ends.
func TestPipeline(t *testing.T) {
	lists, _ := openStore(t, block("blocked", "spam.example\n"))
	c := &dns.Conn{Conn: dialTCP(t, serve(t, newServer(t, lists, zonesOf())))}
	var all []byte
	const n = 200
	for i := range n {
		m := newQuestion(fmt.Sprintf("n%d.spam.example.bl.test", i), dns.TypeTXT)
		m.Id = uint16(i)
		b, _ := m.Pack()
		all = append(append(all, byte(len(b)>>8), byte(len(b))), b...)
	}
	all = append(all, 0, 12, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	go func() {
		for ; len(all) > 0; all = all[min(77, len(all)):] {
			if _, err := c.Conn.Write(all[:min(77, len(all))]); err != nil {
				return
			}
		}
	}()
	for i := range n {
		r, err := c.ReadMsg()
		if err != nil || r.Id != uint16(i) || said(r) != `NOERROR "list blocked"` {
			t.Fatalf("%d: %v, %v", i, r, err)
		}
	}
	if _, err := c.Conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after an answer: %v", err)
	}
}

// TestConnections: there are as many connections as the settings say, and none for clients
// that may not ask.
func TestConnections(t *testing.T) {
	lists, _ := openStore(t, block("blocked", "spam.example\n"))
	settings := zonesOf()
	settings.MaxConnections = 2
	s := newServer(t, lists, settings)
	addr := serve(t, s)
	ask := func(c net.Conn) error {
		d := &dns.Conn{Conn: c}
		if err := d.WriteMsg(newQuestion("spam.example.bl.test", dns.TypeA)); err != nil {
			return err
		}
		_, err := d.ReadMsg()
		return err
	}
	first, second := dialTCP(t, addr), dialTCP(t, addr)
	for _, c := range []net.Conn{first, second} {
		if err := ask(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := ask(dialTCP(t, addr)); err == nil {
		t.Error("a third connection")
	}
	if err := ask(first); err != nil {
		t.Error(err)
	}
	settings.AllowClients, settings.MaxConnections = nil, 0
	if err := s.Apply(settings); err != nil {
		t.Fatal(err)
	}
	if err := ask(dialTCP(t, addr)); err == nil {
		t.Error("a connection of a client that may not ask")
	}
}

// TestShutdown: idle connections end at once, and what was opened too late is closed.
func TestShutdown(t *testing.T) {
	lists, _ := openStore(t, block("blocked", "spam.example\n"))
	s := newServer(t, lists, zonesOf())
	addr := serve(t, s)
	idle := dialTCP(t, addr)
	if r, err := dns.Exchange(newQuestion("spam.example.bl.test", dns.TypeA), addr); err != nil {
		t.Fatal(r, err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := idle.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the idle connection: %v", err)
	}
	c, err := net.ListenPacket("udp", addr) // the address is free again
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ServePacket(c); err != nil {
		t.Error(err)
	}
	if err := c.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a socket that came after Shutdown is open: %v", err)
	}
}

// TestSwaps asks from 8 clients while the list changes all the time: every question is
// answered, and what is in every version is listed, what is in none is not.
func TestSwaps(t *testing.T) {
	always := "spam.example\nuser@one.example\n"
	lists, dir := openStore(t, block("blocked", always))
	s := newServer(t, lists, zonesOf())
	addr := serve(t, s)
	var done atomic.Bool
	var asked atomic.Int64
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			c, err := dns.Dial([]string{"udp", "tcp"}[i%2], addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			client := dns.Client{Net: []string{"udp", "tcp"}[i%2], Timeout: 20 * time.Second}
			for n := 0; !done.Load() || n < 100; n++ {
				name, want := "x.spam.example.bl.test", []string{"NOERROR 127.0.0.2"}
				switch n % 3 {
				case 1:
					name = namesOf("#user@one.example.hash.test")[0]
				case 2: // exists while the names below are not known
					name, want = fmt.Sprintf("clean%d.org.bl.test", n), []string{"NXDOMAIN SOA", "NOERROR SOA"}
				}
				r, _, err := client.ExchangeWithConn(newQuestion(name, dns.TypeA), c)
				if err != nil || said(r) != want[0] && said(r) != want[len(want)-1] {
					t.Errorf("%s: %v, %v", name, r, err)
					return
				}
				asked.Add(1)
			}
		})
	}
	swaps := 0
	for late := time.Now().Add(2 * time.Second); swaps < 3 || asked.Load() < 2000 && time.Now().Before(late); swaps++ {
		name := fmt.Sprintf("new%d.example", swaps)
		writeFile(t, filepath.Join(dir, "blocked"), always+strings.Repeat("#\n", swaps)+name+"\n")
		if err := lists.Rescan(t.Context()); err != nil {
			t.Error(err)
			break
		}
		if r, err := dns.Exchange(newQuestion(name+".bl.test", dns.TypeA), addr); err != nil || said(r) != "NOERROR 127.0.0.2" {
			t.Errorf("%s is not listed after the change: %v, %v", name, r, err)
		}
	}
	done.Store(true)
	clients.Wait()
	t.Logf("%d questions, %d swaps", asked.Load(), swaps)
}
