package world

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A gateClient is a mail server that sends to the gate.
type gateClient struct {
	w    *gateWorld
	plan clientPlan
	conn *end
	in   *bufio.Reader
	bdat bool // the gate offers it
}

// A clientPlan is what a client does.
type clientPlan struct {
	name     string
	addr     string
	style    string        // "plain", "pipelining" or "BDAT"
	slow     time.Duration // before each command, and within a message
	messages []*attempt
	abort    string // the client leaves after this command of its last message: "MAIL", "RCPT", "DATA", "half", "end"; "": it does not
	resets   bool   // it leaves without a word
	cut      int    // after so many bytes the network fails; 0: it does not
}

// An attempt is a message that a client tries to send once.
type attempt struct {
	id           string
	from, header int // the domains of the senders
	to           []string
	size         int

	// What came of it.
	sent, replied time.Time // MAIL, and its reply
	gate          *gateProcess
	mail          string   // the reply to MAIL; "": none came
	replies       []string // to each RCPT
	whole         bool     // all of it was sent
	last          string   // the reply to DATA or to the end; "": none came
}

func (m *attempt) sender() string { return fmt.Sprintf("%s@d%d.example", m.id, m.from) }

// text returns the message.
func (m *attempt) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "From: <%s@d%d.example>\r\nX-World: %s\r\n\r\n", m.id, m.header, m.id)
	for i := 0; b.Len() < m.size; i++ {
		fmt.Fprintf(&b, "%sline %d of %s%s\r\n", []string{"", ".", ".."}[i%3], i, m.id, strings.Repeat("-", m.size/100))
	}
	return b.String()
}

// accepted returns the recipients that the gate has accepted.
func (m *attempt) accepted() (to []string) {
	for i, reply := range m.replies {
		if strings.HasPrefix(reply, "2") {
			to = append(to, m.to[i])
		}
	}
	return to
}

// patience is how long a client waits for a reply: longer than the gate for its next hop's.
const patience = 20 * time.Minute

var errLeft = errors.New("the client leaves")

// run does what is planned.
func (c *gateClient) run() {
	var err error
	if c.conn, err = c.w.net.connect(c.plan.name, c.plan.addr); err != nil {
		if c.tell("cannot connect: %v", err); !c.w.crashed.Load() {
			c.w.fail("%s cannot connect: %v", c.plan.name, err)
		}
		return
	}
	if c.plan.cut > 0 {
		c.conn.left = c.plan.cut
	}
	c.in = bufio.NewReader(c.conn)
	switch err = c.talk(); {
	case err == errLeft && c.plan.resets:
		c.tell("leaves without a word")
		c.w.net.mu.Lock()
		c.conn.reset()
		c.w.net.mu.Unlock()
	case err != nil:
		c.tell("%v", err)
	}
	_ = c.conn.Close()
}

func (c *gateClient) tell(format string, args ...any) { c.w.tell(c.plan.name+": "+format, args...) }

// talk sends all messages.
func (c *gateClient) talk() error {
	reply, err := c.reply()
	if err != nil || !strings.HasPrefix(reply, "220") {
		return cmp.Or(err, fmt.Errorf("is greeted with %q", reply))
	}
	if reply, err = c.ask("EHLO " + c.plan.name + ".example"); err != nil || !strings.HasPrefix(reply, "250") {
		return cmp.Or(err, fmt.Errorf("EHLO: %q", reply))
	}
	c.bdat = strings.Contains(reply, "CHUNKING") && c.plan.style == "BDAT"
	for i, m := range c.plan.messages {
		abort := ""
		if i == len(c.plan.messages)-1 {
			abort = c.plan.abort
		}
		if err := c.send(m, abort); err != nil {
			return err
		}
	}
	_, err = c.ask("QUIT")
	return err
}

// send sends a message.
func (c *gateClient) send(m *attempt, abort string) error {
	m.gate, m.sent = c.conn.peer.gate, time.Now()
	commands := []string{"MAIL FROM:<" + m.sender() + ">"}
	for _, to := range m.to {
		commands = append(commands, "RCPT TO:<"+to+">")
	}
	for i, command := range commands {
		var err error
		if c.plan.style != "pipelining" {
			err = c.write(command + "\r\n")
		} else if i == 0 {
			err = c.write(strings.Join(commands, "\r\n") + "\r\n")
		}
		if err != nil {
			return err
		}
		if i == 0 && abort == "MAIL" || i == 1 && abort == "RCPT" {
			return errLeft
		}
		reply, err := c.reply()
		if err != nil {
			return err
		}
		c.tell("%s: %s", command, c.w.plain(reply))
		if i > 0 {
			m.replies = append(m.replies, reply)
		} else {
			m.mail, m.replied = reply, time.Now()
		}
		if strings.HasPrefix(reply, "421") {
			return io.EOF
		}
	}
	if len(m.accepted()) == 0 {
		_, err := c.ask("RSET")
		return err
	}
	return c.content(m, abort)
}

// content sends a message, in two parts.
func (c *gateClient) content(m *attempt, abort string) error {
	first, rest := m.text()[:m.size/2], m.text()[m.size/2:]
	if c.bdat {
		first, rest = fmt.Sprintf("BDAT %d\r\n%s", len(first), first), fmt.Sprintf("BDAT %d LAST\r\n%s", len(rest), rest)
	} else {
		text := strings.ReplaceAll("\r\n"+m.text(), "\r\n.", "\r\n..")[2:]
		first, rest = text[:m.size/2], text[m.size/2:]+".\r\n"
		if err := c.write("DATA\r\n"); err != nil || abort == "DATA" {
			return cmp.Or(err, errLeft)
		}
		if goes, err := c.wantsMore(m, "354"); !goes {
			return err
		}
	}
	if err := c.write(first); err != nil || abort == "half" || abort == "DATA" {
		return cmp.Or(err, errLeft)
	}
	if c.bdat {
		if goes, err := c.wantsMore(m, "250"); !goes {
			return err
		}
	}
	m.whole = true
	if err := c.write(rest); err != nil || abort == "end" {
		return cmp.Or(err, errLeft)
	}
	_, err := c.wantsMore(m, "-")
	return err
}

// wantsMore reads a reply, and reports whether it has the code. Another one is the last one to the message.
func (c *gateClient) wantsMore(m *attempt, code string) (bool, error) {
	reply, err := c.reply()
	switch {
	case err != nil:
		return false, err
	case strings.HasPrefix(reply, code):
		return true, nil
	}
	m.last = reply
	c.tell("%s: %s", m.id, c.w.plain(reply))
	if strings.HasPrefix(reply, "421") {
		return false, io.EOF
	}
	if !m.whole {
		_, err = c.ask("RSET")
	}
	return false, err
}

// ask sends a command and reads the reply.
func (c *gateClient) ask(command string) (string, error) {
	if err := c.write(command + "\r\n"); err != nil {
		return "", err
	}
	reply, err := c.reply()
	if err == nil {
		c.tell("%s: %s", command, c.w.plain(reply))
	}
	return reply, err
}

// write sends something, after a while if the client is slow.
func (c *gateClient) write(text string) error {
	time.Sleep(c.plan.slow)
	_, err := io.WriteString(c.conn, text)
	return err
}

var replyLine = regexp.MustCompile(`^([2-5][0-9][0-9])([ -])([\x20-\x7e]*)\r\n$`)

// reply reads a reply, which must be well-formed. Nothing may follow one that nothing is expected after.
func (c *gateClient) reply() (string, error) {
	_ = c.conn.SetReadDeadline(time.Now().Add(patience))
	var lines []string
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				c.w.fail("%s waits for a reply for %v", c.plan.name, patience)
			}
			return "", err
		}
		m := replyLine.FindStringSubmatch(line)
		if m == nil || len(line) > 512 || len(lines) > 0 && lines[0][:3] != m[1] {
			c.w.fail("%s gets the line %q after %q", c.plan.name, line, lines)
			return "", io.EOF
		}
		lines = append(lines, m[1]+" "+m[3])
		if m[2] == " " {
			break
		}
	}
	if c.in.Buffered() > 0 && c.plan.style != "pipelining" && !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "421") }) {
		next, _ := c.in.ReadString('\n')
		if !strings.HasPrefix(next, "421") {
			c.w.fail("%s gets %q after %q", c.plan.name, next, lines)
		}
		return "", io.EOF
	}
	return strings.Join(lines, " / "), nil
}
