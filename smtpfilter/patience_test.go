package smtpfilter_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// fill writes until the other end reads no more.
func fill(t *testing.T, c net.Conn, text string) {
	t.Helper()
	chunk := []byte(strings.Repeat(text, 1+(64<<10)/len(text)))
	for range 10_000 {
		c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
		if _, err := c.Write(chunk); errors.Is(err, os.ErrDeadlineExceeded) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the other end takes everything")
}

// shutDown stops a gate at once. Cuts says that it cuts off mail.
func shutDown(t *testing.T, g *gate, cuts bool) {
	t.Helper()
	if err := shutDownNow(t, g); (err != nil) != cuts || cuts && !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown returned %v; it cuts off mail: %v", err, cuts)
	}
}

// shutDownNow shuts the gate down without patience, and returns what Shutdown returns.
func shutDownNow(t *testing.T, g *gate) error {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	done := make(chan error, 1)
	go func() { done <- g.server.Shutdown(ctx) }()
	select {
	case err := <-done:
		return err
	case <-time.After(waitLimit):
		t.Fatal("Shutdown does not end")
		return nil
	}
}

// TestShutdownWithClientThatDoesNotRead fills the connection with replies that the client
// does not read.
func TestShutdownWithClientThatDoesNotRead(t *testing.T) {
	sink := smtptest.NewSink(t)
	g := newGate(t, gateOptions{nextHop: sink.Addr(), wire: smtpfilter.Settings{Rules: wire.Rules{MaxRefusals: 1 << 30}}})
	c := dial(t, g.addr)
	c.send("HELO client.example\r\n")
	fill(t, c.Conn, "NOOP\r\n")
	shutDown(t, g, false)
}

// TestShutdownWithNextHopThatDoesNotRead fills the connection to the next hop with a
// message.
func TestShutdownWithNextHopThatDoesNotRead(t *testing.T) {
	hop, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hop.Close()
	got := make(chan net.Conn, 1)
	serve := func(conn net.Conn) {
		in := bufio.NewReader(conn)
		io.WriteString(conn, "220 deaf\r\n")
		for {
			line, err := in.ReadString('\n')
			switch {
			case err != nil:
				conn.Close() // the gate has only asked what is offered
				return
			case strings.HasPrefix(line, "DATA"):
				io.WriteString(conn, "354 go on\r\n")
				got <- conn
				return
			}
			io.WriteString(conn, "250 ok\r\n")
		}
	}
	go func() {
		for {
			conn, err := hop.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	g := newGate(t, gateOptions{nextHop: hop.Addr().String()})
	c := dial(t, g.addr)
	c.toData("a@example.com")
	c.send("\r\n")
	fill(t, c.Conn, "0123456789012345678901234567890123456789\r\n")
	defer (<-got).Close()
	shutDown(t, g, true)
}

// TestApplyLeavesOpenTransactions wants a message to go to the next hop that was set at
// its MAIL, although another one was set and the first one closed before it was needed.
func TestApplyLeavesOpenTransactions(t *testing.T) {
	before, after := smtptest.NewSink(t), smtptest.NewSink(t)
	g := newGate(t, gateOptions{nextHop: before.Addr(), reuse: true})
	c := dial(t, g.addr)
	c.reply("220")
	c.send("HELO client.example\r\nMAIL FROM:<a@example.com>\r\n")
	c.reply("250")
	c.reply("250")

	next, err := nexthop.NewSMTP(nexthop.SMTPConfig{Addr: after.Addr(), Hostname: "gate.example", ProbeInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	settings := g.settings
	settings.NextHop = next
	old, err := g.listener.Apply(settings)
	if err != nil {
		t.Fatal(err)
	}
	if err := old.NextHop.Close(); err != nil {
		t.Fatal(err)
	}
	g.target = next

	c.send("RCPT TO:<b@example.net>\r\nDATA\r\n")
	c.reply("250")
	c.reply("354")
	c.send("x: 1\r\n.\r\n")
	c.reply("250")
	c.mailToData("a@example.com")
	c.send("x: 2\r\n.\r\n")
	c.reply("250")
	if b, a := len(before.Messages()), len(after.Messages()); b != 1 || a != 1 {
		t.Errorf("%d messages went to the old next hop and %d to the new one", b, a)
	}
}

// TestHostileHeaderIsCheap wants hundreds of invalid addresses to cause one line in the
// log, however it shows addresses.
func TestHostileHeaderIsCheap(t *testing.T) {
	sink := smtptest.NewSink(t)
	shown := 0
	lines := logged(t, gateOptions{
		nextHop: sink.Addr(),
		policy:  smtpfilter.Policy{HeaderFields: []string{"From"}},
		show:    func(a string) string { shown++; return a },
	}, 0, func(c *client) {
		c.toData("a@example.com")
		c.send("From: a@b*c" + strings.Repeat(",\r\n a@b*c.d", 900) + "\r\n\r\n.\r\n")
		c.reply("250")
	})
	checkLines(t, lines, []string{`msg="header address not understood"`, `addresses=`}, []string{`msg=accepted`})
	if shown > 100 {
		t.Errorf("%d addresses were written for the log", shown)
	}
}
