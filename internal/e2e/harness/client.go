package harness

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A Client is an SMTP client that sends exactly the lines that a test gives it.
type Client struct {
	net.Conn
	Reader *bufio.Reader
}

// NewClient returns a client for a connection from which nothing was read.
func NewClient(conn net.Conn) *Client { return &Client{conn, bufio.NewReader(conn)} }

// Connect connects to a server and sends nothing.
func Connect(addr string) (*Client, error) {
	conn, err := net.DialTimeout("tcp", addr, ReplyTimeout)
	if err != nil {
		return nil, err
	}
	return NewClient(conn), nil
}

// Dial connects to a gate, reads the greeting and says EHLO. From is the client's own
// address, or "" for any: see [DialFrom].
func Dial(addr, from string) (*Client, error) {
	conn, err := DialFrom(addr, from)
	if err != nil {
		return nil, err
	}
	return Greet(conn)
}

// Greet reads a server's greeting and says EHLO.
func Greet(conn net.Conn) (*Client, error) {
	c := NewClient(conn)
	if reply, err := c.Reply(); err != nil || !strings.HasPrefix(reply, "220") {
		conn.Close()
		return nil, fmt.Errorf("greeting %q: %w", reply, err)
	}
	if reply, err := c.Ask("EHLO client.example"); err != nil || !strings.HasPrefix(reply, "250") {
		conn.Close()
		return nil, fmt.Errorf("EHLO: %q: %w", reply, err)
	}
	return c, nil
}

// MustDial is [Dial] from any address. It must be called by the test's own goroutine.
func MustDial(t testing.TB, addr string) *Client {
	t.Helper()
	return MustDialFrom(t, addr, "")
}

// MustDialFrom is [Dial]. It must be called by the test's own goroutine.
func MustDialFrom(t testing.TB, addr, from string) *Client {
	t.Helper()
	c, err := Dial(addr, from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Reply reads a reply and returns its lines without CRLF, joined by "\n".
func (c *Client) Reply() (string, error) {
	c.SetReadDeadline(time.Now().Add(ReplyTimeout))
	var lines []string
	for {
		line, err := c.Reader.ReadString('\n')
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

// Ask sends a command line and returns the reply.
func (c *Client) Ask(line string) (string, error) {
	if _, err := io.WriteString(c, line+"\r\n"); err != nil {
		return "", err
	}
	return c.Reply()
}

// Want sends a command line and fails the test unless the reply begins with prefix.
func (c *Client) Want(t testing.TB, line, prefix string) string {
	t.Helper()
	reply, err := c.Ask(line)
	if err != nil || !strings.HasPrefix(reply, prefix) {
		t.Fatalf("%s: %q, %v; want %q", line, reply, err, prefix)
	}
	return reply
}

// Send sends a whole message and returns the reply that decided about it.
func (c *Client) Send(from, to string, message []byte) (string, error) {
	for _, line := range []string{"MAIL FROM:<" + from + ">", "RCPT TO:<" + to + ">", "DATA"} {
		reply, err := c.Ask(line)
		if err != nil || reply[0] != '2' && reply[0] != '3' {
			return reply, err
		}
	}
	if _, err := c.Write(DotStuff(message)); err != nil {
		return "", err
	}
	return c.Reply()
}

// MustSend is [Client.Send]. It must be called by the test's own goroutine.
func (c *Client) MustSend(t testing.TB, from, to, message string) string {
	t.Helper()
	reply, err := c.Send(from, to, []byte(message))
	if err != nil {
		t.Fatalf("message from %s: %q, %v", from, reply, err)
	}
	return reply
}

// Verdict returns the reply to RCPT, and resets the transaction.
func (c *Client) Verdict(from, to string) (string, error) {
	if reply, err := c.Ask("MAIL FROM:<" + from + ">"); err != nil || reply[0] != '2' {
		return reply, err
	}
	reply, err := c.Ask("RCPT TO:<" + to + ">")
	if err != nil {
		return reply, err
	}
	_, err = c.Ask("RSET")
	return reply, err
}

// DotStuff returns a message, whose lines end in CRLF, as it is sent after DATA: with
// dots doubled and the final dot.
func DotStuff(message []byte) []byte {
	b := make([]byte, 0, len(message)+len(message)/64+8)
	for line := range bytes.Lines(message) {
		if line[0] == '.' {
			b = append(b, '.')
		}
		b = append(b, line...)
	}
	return append(b, ".\r\n"...)
}

// SmallMessage returns a small message with that sender, subject and Message-ID.
func SmallMessage(from, subject string) string {
	return "From: <" + from + ">\r\nTo: <you@example.net>\r\nDate: Fri, 20 Nov 2026 10:00:00 +0000\r\n" +
		"Message-ID: <" + subject + "@example.com>\r\nSubject: " + subject + "\r\n\r\nHello.\r\n"
}

// WaitOffered waits until a gate offers an EHLO keyword. A gate opens after at most two
// seconds, even if it does not know yet what its next hop offers.
func WaitOffered(t testing.TB, addr, keyword string) {
	t.Helper()
	WaitFor(t, keyword+" to be offered", func() bool {
		c := MustDial(t, addr)
		defer c.Close()
		return strings.Contains(c.Want(t, "EHLO client.example", "250"), keyword)
	})
}

// WantReply fails the test unless the next reply begins with prefix.
func (c *Client) WantReply(t testing.TB, prefix string) {
	t.Helper()
	if reply, err := c.Reply(); err != nil || !strings.HasPrefix(reply, prefix) {
		t.Fatalf("%s heard %q, %v; want %q", c.LocalAddr(), reply, err, prefix)
	}
}

// WantClosed reports an error unless the server has closed the connection.
func (c *Client) WantClosed(t testing.TB) {
	t.Helper()
	if reply, err := c.Reply(); err == nil {
		t.Errorf("%s is still connected, and heard %q", c.LocalAddr(), reply)
	}
}

// WantRefusal checks the reply that refuses a listed sender, and returns its id.
func WantRefusal(t testing.TB, reply, sender, list, reason string) (id string) {
	t.Helper()
	want := fmt.Sprintf("^550 5\\.7\\.1 <%s> refused: list %s \\(%s\\); id ([A-Z2-7]{12})$",
		regexp.QuoteMeta(sender), list, regexp.QuoteMeta(reason))
	m := regexp.MustCompile(want).FindStringSubmatch(reply)
	if m == nil {
		t.Fatalf("the refusal %q does not match %s", reply, want)
	}
	return m[1]
}

// listens reports whether a server accepts connections.
func listens(network, addr string) bool {
	c, err := net.Dial(network, addr)
	if err == nil {
		c.Close()
	}
	return err == nil
}

// Greets reports whether a server answers with 220.
func Greets(addr string) bool {
	c, err := Connect(addr)
	if err != nil {
		return false
	}
	defer c.Close()
	reply, err := c.Reply()
	c.Ask("QUIT") // the reply does not matter
	return err == nil && strings.HasPrefix(reply, "220")
}
