package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// client is an SMTP client that says what it is told to, and no more.
type client struct {
	net.Conn
	in *bufio.Reader
}

// dial connects to a gate and greets it. From is the client's own address, ""
// for any, see dialAs.
func dial(addr, from string) (*client, error) {
	conn, err := dialAs(addr, from)
	if err != nil {
		return nil, err
	}
	return greet(conn)
}

// greet takes a server's greeting and says EHLO.
func greet(conn net.Conn) (*client, error) {
	c := &client{conn, bufio.NewReader(conn)}
	if reply, err := c.reply(); err != nil || !strings.HasPrefix(reply, "220") {
		conn.Close()
		return nil, fmt.Errorf("greeting %q: %w", reply, err)
	}
	if reply, err := c.ask("EHLO client.example"); err != nil || !strings.HasPrefix(reply, "250") {
		conn.Close()
		return nil, fmt.Errorf("EHLO: %q: %w", reply, err)
	}
	return c, nil
}

// mustDial is dial for the test's own goroutine.
func mustDial(t testing.TB, addr string) *client {
	t.Helper()
	return mustDialFrom(t, addr, "")
}

func mustDialFrom(t testing.TB, addr, from string) *client {
	t.Helper()
	c, err := dial(addr, from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// reply reads a reply: its lines without CRLF, joined by "\n".
func (c *client) reply() (string, error) {
	c.SetReadDeadline(time.Now().Add(waitLimit))
	var lines []string
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return strings.Join(lines, "\n"), err
		}
		line = strings.TrimSuffix(line, "\r\n")
		lines = append(lines, line)
		if len(line) < 4 || line[3] != '-' {
			return strings.Join(lines, "\n"), nil
		}
	}
}

// ask sends a command line and reads the reply.
func (c *client) ask(line string) (string, error) {
	if _, err := io.WriteString(c, line+"\r\n"); err != nil {
		return "", err
	}
	return c.reply()
}

// want asks and wants the reply to begin with a text.
func (c *client) want(t testing.TB, line, prefix string) string {
	t.Helper()
	reply, err := c.ask(line)
	if err != nil || !strings.HasPrefix(reply, prefix) {
		t.Fatalf("%s: %q, %v; want %q", line, reply, err, prefix)
	}
	return reply
}

// send sends a whole message and returns the reply that decided.
func (c *client) send(from, to string, message []byte) (string, error) {
	for _, line := range []string{"MAIL FROM:<" + from + ">", "RCPT TO:<" + to + ">", "DATA"} {
		reply, err := c.ask(line)
		if err != nil || reply[0] != '2' && reply[0] != '3' {
			return reply, err
		}
	}
	if _, err := c.Write(stuff(message)); err != nil {
		return "", err
	}
	return c.reply()
}

// mustSend is send for the test's own goroutine.
func (c *client) mustSend(t testing.TB, from, to, message string) string {
	t.Helper()
	reply, err := c.send(from, to, []byte(message))
	if err != nil {
		t.Fatalf("message from %s: %q, %v", from, reply, err)
	}
	return reply
}

// verdict is the reply to RCPT, after which the transaction is given up.
func (c *client) verdict(from, to string) (string, error) {
	if reply, err := c.ask("MAIL FROM:<" + from + ">"); err != nil || reply[0] != '2' {
		return reply, err
	}
	reply, err := c.ask("RCPT TO:<" + to + ">")
	if err != nil {
		return reply, err
	}
	_, err = c.ask("RSET")
	return reply, err
}

// asker asks for verdicts, on a new connection now and then: the gate ends a
// session in which too much was refused.
type asker struct {
	addr  string
	c     *client
	asked int
}

// asksPerConnection is well below what the gate puts up with.
const asksPerConnection = 20

func (a *asker) verdict(from, to string) (string, error) {
	if a.c != nil && a.asked == asksPerConnection {
		a.close()
	}
	if a.c == nil {
		c, err := dial(a.addr, "")
		if err != nil {
			return "", err
		}
		a.c, a.asked = c, 0
	}
	a.asked++
	return a.c.verdict(from, to)
}

func (a *asker) close() {
	if a.c != nil {
		a.c.ask("QUIT") // politeness; nothing depends on it
		a.c.Close()
		a.c = nil
	}
}

// stuff is a message, whose lines end in CRLF, as it goes over the wire, its end
// included.
func stuff(message []byte) []byte {
	b := make([]byte, 0, len(message)+len(message)/64+8)
	for line := range bytes.Lines(message) {
		if line[0] == '.' {
			b = append(b, '.')
		}
		b = append(b, line...)
	}
	return append(b, ".\r\n"...)
}

// letter is a small message.
func letter(from, subject string) string {
	return "From: <" + from + ">\r\nTo: <you@example.net>\r\nDate: Fri, 20 Nov 2026 10:00:00 +0000\r\n" +
		"Message-ID: <" + subject + "@example.com>\r\nSubject: " + subject + "\r\n\r\nHello.\r\n"
}
