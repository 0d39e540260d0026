package smtpfilter_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"

	"spamgate/internal/smtptest"
)

// ledgerClient is a client outside the test's goroutine, that does at random what
// clients may do.
type ledgerClient struct {
	*client
	rng *rand.Rand
}

// runClient sends n messages, each on the connection of the previous one if that is still
// open.
func runClient(addr string, number, n int) []attempt {
	rng := rand.New(rand.NewPCG(uint64(number), 42))
	var rows []attempt
	var c *ledgerClient
	for i := range n {
		a := attempt{id: fmt.Sprintf("%d-%d", number, i)}
		a.body = randomMessage(rng, a.id)
		if c == nil {
			c = newLedgerClient(addr, rng)
		}
		lasts := true
		switch {
		case c == nil:
			a.ended, a.reply = true, "no connection"
		case rng.IntN(2) == 0:
			lasts = c.data(&a)
		default:
			lasts = c.chunks(&a)
		}
		if c != nil && (!lasts || rng.IntN(4) == 0) {
			c.Close()
			c = nil
		}
		rows = append(rows, a)
	}
	if c != nil {
		c.Close()
	}
	return rows
}

// randomMessage returns a message with all byte values from 40 on, lines of any length,
// and many dots.
func randomMessage(rng *rand.Rand, id string) []byte {
	b := []byte("X-Ledger: " + id + "\r\n\r\n")
	for range rng.IntN(30) {
		length := rng.IntN(120)
		if rng.IntN(30) == 0 {
			length = rng.IntN(200_000)
		}
		line := make([]byte, 0, length+8)
		for len(line) < length {
			line = binary.LittleEndian.AppendUint64(line, rng.Uint64())
		}
		for i, c := range line {
			if c < 40 {
				line[i] = '.'
			}
		}
		b = append(append(b, line[:length]...), '\r', '\n')
	}
	return b
}

// stuff returns a message as it is sent, dot-stuffed and with its end.
func stuff(body []byte) []byte {
	var b []byte
	for line := range bytes.Lines(body) {
		if line[0] == '.' {
			b = append(b, '.')
		}
		b = append(b, line...)
	}
	return append(b, ".\r\n"...)
}

// newLedgerClient connects, with TLS at random.
func newLedgerClient(addr string, rng *rand.Rand) *ledgerClient {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil
	}
	c := &ledgerClient{&client{Conn: conn, in: bufio.NewReader(conn)}, rng}
	c.readReply()
	c.say("EHLO client.example\r\n", 1)
	if rng.IntN(2) == 0 {
		c.say("STARTTLS\r\n", 1)
		secure := tls.Client(conn, &tls.Config{RootCAs: smtptest.Roots(), ServerName: smtptest.ServerName})
		c.Conn, c.in = secure, bufio.NewReader(secure)
		c.say("EHLO client.example\r\n", 1)
	}
	return c
}

// say sends commands and returns the last of their replies.
func (c *ledgerClient) say(commands string, replies int) (last string) {
	io.WriteString(c, commands)
	for range replies {
		last, _ = c.readReply()
	}
	return last
}

// begin begins a transaction, sometimes in the second attempt.
func (c *ledgerClient) begin() (reply string) {
	const mail = "MAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.net>\r\n"
	if c.rng.IntN(8) == 0 {
		c.say(mail+"RSET\r\n", 3)
	}
	return c.say(mail, 2)
}

// data sends a message with DATA, or the beginning of one, and stores the outcome. It
// reports whether the connection can be used again.
func (c *ledgerClient) data(a *attempt) (lasts bool) {
	c.begin()
	if a.reply = c.say("DATA\r\n", 1); !strings.HasPrefix(a.reply, "354") {
		a.ended = true
		return false
	}
	sent := stuff(a.body)
	if c.rng.IntN(5) == 0 {
		c.Write(sent[:c.rng.IntN(len(sent))])
		a.reply = ""
		return false
	}
	a.ended = true
	a.reply = c.say(string(sent), 1)
	return a.reply != ""
}

// chunks is data with BDAT. Between two chunks the client may also give the message up,
// and send another.
func (c *ledgerClient) chunks(a *attempt) (lasts bool) {
	c.begin()
	for rest := a.body; ; {
		size := c.rng.IntN(len(rest) + 1)
		command := fmt.Sprintf("BDAT %d\r\n", size)
		if c.rng.IntN(3) == 0 {
			size = len(rest)
			command = fmt.Sprintf("BDAT %d LAST\r\n", size)
		}
		last := strings.Contains(command, "LAST")
		chunk := command + string(rest[:size])
		rest = rest[size:]
		switch c.rng.IntN(12) {
		case 0: // goes away inside the command or the chunk
			io.WriteString(c, chunk[:c.rng.IntN(len(chunk))])
			return false
		case 1:
			c.say("RSET\r\n", 1)
			return true
		case 2:
			c.say("QUIT\r\n", 1)
			return false
		}
		a.reply = c.say(chunk, 1)
		if last || !strings.HasPrefix(a.reply, "250") {
			a.ended = true
			return last
		}
	}
}
