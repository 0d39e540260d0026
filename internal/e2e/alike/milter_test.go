package alike

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
	"spamgate/smtpfilter"
)

// What the test's mail server offers a milter: all actions, and to leave out what follows
// the header. It wants each answer.
const (
	milterActions = 0x1ff
	noBody        = 0x10
	noEndHeader   = 0x40
	noUnknown     = 0x100
	noData        = 0x200
	maySkip       = 0x400
	leadingSpace  = 0x100000
)

// milterClient is a mail server that asks a milter. It writes down a first error, and all
// later calls do nothing.
type milterClient struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
	what string // the present message

	version  uint32
	protocol uint32 // what was agreed on
}

// send asks about a message on a connection of its own, as a mail server does for each of
// its clients.
func sendMilter(t testing.TB, addr string, version uint32, name string, m mail) *heard {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := &milterClient{t: t, conn: conn, r: bufio.NewReader(conn), what: m.what, version: version}
	c.negotiate()
	c.define('C', "j", name)
	c.want('C', "localhost\x004\x12\x67"+cmp.Or(m.client, "127.0.0.1")+"\x00", 'c')
	c.want('H', m.helo+"\x00", 'c')
	c.want('M', "<"+m.from+">\x00", 'c')
	h := &heard{}
	for _, rcpt := range m.rcpts {
		h.rcpts = append(h.rcpts, c.reply(c.ask('R', "<"+rcpt+">\x00")))
		if h.rcpts[len(h.rcpts)-1] == "" {
			h.got = append(h.got, rcpt)
		}
	}
	if h.passes() {
		c.message(m, h)
	}
	c.send('Q', "")
	return h
}

// message tells the milter the header and the end of a message.
func (c *milterClient) message(m mail, h *heard) {
	c.t.Helper()
	if c.protocol&noData == 0 && c.version > 3 {
		c.want('T', "", 'c')
	}
	for _, f := range fields(m.header) {
		value := f.value
		if c.protocol&leadingSpace == 0 {
			value = strings.TrimPrefix(value, " ")
		}
		c.want('L', f.name+"\x00"+value+"\x00", 'c')
	}
	if c.protocol&noEndHeader == 0 {
		c.want('N', "", 'c')
	}
	if c.protocol&noBody == 0 {
		c.body(m.content())
	}
	c.send('E', "")
	for {
		command, data := c.receive()
		switch command {
		case 'h': // another field
			name, value, _ := strings.Cut(strings.TrimSuffix(data, "\x00"), "\x00")
			if name != smtpfilter.TagField {
				c.t.Errorf("%s: it adds %q", c.what, data)
			}
			h.tags = append(h.tags, strings.TrimSpace(value))
		case '-': // a recipient less
			rcpt := strings.Trim(data, "<>\x00")
			if !slices.Contains(h.got, rcpt) {
				c.t.Errorf("%s: it deletes the recipient %q of %q", c.what, rcpt, h.got)
			}
			h.got = slices.DeleteFunc(h.got, func(s string) bool { return s == rcpt })
		case 'd':
			h.got = nil
			return
		default:
			if h.end = c.reply(command, data); h.end != "" {
				h.got = nil
			}
			return
		}
	}
}

// chunk is how much of a body Postfix and Sendmail send at once.
const chunk = 65535

// body sends the body, until the milter wants no more of it.
func (c *milterClient) body(text string) {
	c.t.Helper()
	for part := range slices.Chunk([]byte(text), chunk) {
		answer, data := c.ask('B', string(part))
		switch {
		case answer == 's' && c.protocol&maySkip != 0:
			return
		case answer != 'c':
			c.t.Fatalf("%s: a part of the body is answered with %q %q", c.what, answer, data)
		}
	}
}

// negotiate offers what a mail server of the version has.
func (c *milterClient) negotiate() {
	c.t.Helper()
	offer := uint32(noBody | noEndHeader)
	if c.version > 2 {
		offer |= noUnknown | noData | maySkip | leadingSpace
	}
	var data []byte
	for _, n := range []uint32{c.version, milterActions, offer} {
		data = binary.BigEndian.AppendUint32(data, n)
	}
	command, answer := c.ask('O', string(data))
	if command != 'O' || len(answer) < 12 || binary.BigEndian.Uint32([]byte(answer)) != c.version {
		c.t.Fatalf("it answers the negotiation with %q %q", command, answer)
	}
	c.protocol = binary.BigEndian.Uint32([]byte(answer[8:]))
	if c.protocol&^offer != 0 {
		c.t.Fatalf("it wants %#x of %#x", c.protocol, offer)
	}
}

func (c *milterClient) define(stage byte, name, value string) {
	c.send('D', string(stage)+name+"\x00"+value+"\x00")
}

func (c *milterClient) send(command byte, data string) {
	c.t.Helper()
	packet := binary.BigEndian.AppendUint32(nil, uint32(len(data)+1))
	packet = append(append(packet, command), data...)
	if _, err := c.conn.Write(packet); err != nil {
		c.t.Fatalf("%s: sending %q: %v", c.what, command, err)
	}
}

func (c *milterClient) receive() (command byte, data string) {
	c.t.Helper()
	c.conn.SetReadDeadline(time.Now().Add(harness.ReplyTimeout))
	var head [5]byte
	_, err := io.ReadFull(c.r, head[:])
	rest := make([]byte, max(1, min(binary.BigEndian.Uint32(head[:]), 1<<20))-1)
	if err == nil {
		_, err = io.ReadFull(c.r, rest)
	}
	if err != nil {
		c.t.Fatalf("%s: the milter's answer: %v", c.what, err)
	}
	return head[4], string(rest)
}

func (c *milterClient) ask(command byte, data string) (answer byte, text string) {
	c.t.Helper()
	c.send(command, data)
	return c.receive()
}

// want asks and wants an answer.
func (c *milterClient) want(command byte, data string, want byte) {
	c.t.Helper()
	if answer, text := c.ask(command, data); answer != want {
		c.t.Fatalf("%s: %q %.100q is answered with %q %q, want %q", c.what, command, data, answer, text, want)
	}
}

// reply returns the refusal in an answer, or "". In it the percent sign is doubled.
func (c *milterClient) reply(answer byte, text string) string {
	c.t.Helper()
	switch answer {
	case 'c', 'a':
		return ""
	case 'y':
		text = strings.TrimSuffix(text, "\x00")
		if strings.Contains(strings.ReplaceAll(text, "%%", ""), "%") {
			c.t.Errorf("%s: a percent sign alone in %q", c.what, text)
		}
		return refusal(strings.ReplaceAll(text, "%%", "%"))
	}
	c.t.Fatalf("%s: the milter answers %q %q", c.what, answer, text)
	return ""
}
