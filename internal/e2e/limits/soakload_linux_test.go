package limits

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"

	"spamgate/internal/e2e/harness"
)

// This file has the load of the soak.

// A soakKind is a kind of client.
type soakKind struct {
	name   string
	domain string // domain of its senders
	send   func(c *soakClient, sender string) (outcome, error)
}

var soakKinds = []soakKind{
	{"small, kept", "example.com", sendKept(500, false)},
	{"small, kept, TLS", "example.com", sendKept(500, true)},
	{"4 KiB, a connection each", "example.com", sendOnce(4<<10, false)},
	{"4 KiB, a connection each, TLS", "example.com", sendOnce(4<<10, true)},
	{"1 MiB", "example.com", sendKept(1<<20, false)},
	{"1 MiB, TLS", "example.com", sendKept(1<<20, true)},
	{"chunks", "example.com", soakChunks},
	{"tagged", "first.tagged.example", sendKept(500, false)},
	{"listed", "last.blocked.example", sendListed},
	{"listed in the header", "example.com", sendListedHeader},
	{"bare LF", "example.com", sendBareLF},
	{"reset in the message", "example.com", sendReset},
}

// A soakClient is a client and its connection, if it has one.
type soakClient struct {
	addr, from string
	c          *harness.Client
	used       int
}

// soakKeeps is how many messages a client sends on a connection.
const soakKeeps = 50

// greeted makes sure that there is a connection, an old one or a new one.
func (k *soakClient) greeted(secure bool) error {
	if k.used++; k.c != nil && k.used <= soakKeeps {
		return nil
	}
	k.close()
	c, err := harness.Dial(k.addr, k.from)
	if err != nil {
		return err
	}
	if secure {
		if reply, err := c.Ask("STARTTLS"); err != nil || !strings.HasPrefix(reply, "220") {
			return fmt.Errorf("STARTTLS: %q, %w", reply, err)
		}
		// The soak does not test who the gate is.
		conn := tls.Client(c.Conn, &tls.Config{InsecureSkipVerify: true})
		c = harness.NewClient(conn)
		if reply, err := c.Ask("EHLO client.example"); err != nil || !strings.HasPrefix(reply, "250") {
			return fmt.Errorf("EHLO under TLS: %q, %w", reply, err)
		}
	}
	k.c, k.used = c, 1
	return nil
}

func (k *soakClient) close() {
	if k.c != nil {
		k.c.Close()
		k.c = nil
	}
}

// checkReply returns the outcome of a message, and an error if the reply is not the
// expected one.
func checkReply(reply string, err error, want string, became outcome) (outcome, error) {
	if err != nil || !strings.HasPrefix(reply, want) {
		return became, fmt.Errorf("%q, %w; want %q", reply, err, want)
	}
	return became, nil
}

// sized returns a message of about size bytes.
func sized(from string, size int) []byte {
	text := harness.SmallMessage(from, "soak")
	const line = "0123456789012345678901234567890123456789012345678901234567890123456789\r\n"
	return []byte(text + strings.Repeat(line, max(0, size-len(text))/len(line)))
}

func sendKept(size int, secure bool) func(*soakClient, string) (outcome, error) {
	return func(k *soakClient, sender string) (outcome, error) {
		if err := k.greeted(secure); err != nil {
			return soakRefused, err
		}
		reply, err := k.c.Send(sender, "b@example.net", sized("a@example.com", size))
		return checkReply(reply, err, "250 ", soakTaken)
	}
}

func sendOnce(size int, secure bool) func(*soakClient, string) (outcome, error) {
	send := sendKept(size, secure)
	return func(k *soakClient, sender string) (outcome, error) {
		defer k.close()
		return send(k, sender)
	}
}

// sendEnvelope sends a sender and a recipient.
func sendEnvelope(c *harness.Client, sender string) error {
	for _, line := range []string{"MAIL FROM:<" + sender + ">", "RCPT TO:<b@example.net>"} {
		if reply, err := c.Ask(line); err != nil || !strings.HasPrefix(reply, "250") {
			return fmt.Errorf("%s: %q, %w", line, reply, err)
		}
	}
	return nil
}

// soakChunks sends a message in three chunks without waiting between them.
func soakChunks(k *soakClient, sender string) (outcome, error) {
	if err := k.greeted(false); err != nil {
		return soakRefused, err
	}
	if err := sendEnvelope(k.c, sender); err != nil {
		return soakRefused, err
	}
	message := sized("a@example.com", 20_000)
	fmt.Fprintf(k.c, "BDAT 1000\r\n%sBDAT 10000\r\n%sBDAT %d LAST\r\n%s", message[:1000], message[1000:11_000], len(message)-11_000, message[11_000:])
	for range 2 {
		if reply, err := k.c.Reply(); err != nil || !strings.HasPrefix(reply, "250 ") {
			return soakRefused, fmt.Errorf("a chunk: %q, %w", reply, err)
		}
	}
	reply, err := k.c.Reply()
	return checkReply(reply, err, "250 ", soakTaken)
}

func sendListed(k *soakClient, sender string) (outcome, error) {
	if err := k.greeted(false); err != nil {
		return soakRefused, err
	}
	reply, err := k.c.Verdict(sender, "b@example.net")
	return checkReply(reply, err, "550 ", soakRefused)
}

func sendListedHeader(k *soakClient, sender string) (outcome, error) {
	if err := k.greeted(false); err != nil {
		return soakRefused, err
	}
	reply, err := k.c.Send(sender, "b@example.net", sized("x@first.blocked.example", 5000))
	return checkReply(reply, err, "550 ", soakRefused)
}

func sendBareLF(k *soakClient, sender string) (outcome, error) {
	if err := k.greeted(false); err != nil {
		return soakRefused, err
	}
	defer k.close() // the gate has closed the connection
	reply, err := k.c.Send(sender, "b@example.net", append(sized("a@example.com", 3000), "a\nb\r\n"...))
	return checkReply(reply, err, "550 5.5.2", soakRefused)
}

// sendReset resets the connection in a message.
func sendReset(k *soakClient, sender string) (outcome, error) {
	if err := k.greeted(false); err != nil {
		return soakRefused, err
	}
	defer k.close()
	if err := sendEnvelope(k.c, sender); err != nil {
		return soakRefused, err
	}
	reply, err := k.c.Ask("DATA")
	if err == nil {
		_, err = k.c.Write(sized("a@example.com", 30_000))
	}
	k.c.Conn.(*net.TCPConn).SetLinger(0)
	return checkReply(reply, err, "354", soakRefused)
}
