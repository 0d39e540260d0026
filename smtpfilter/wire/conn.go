package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Config holds what all connections of a listener share.
type Config struct {
	// Hostname is what the gate calls itself in its replies.
	Hostname string

	// MaxMessageBytes is the largest message taken, in bytes as RFC 1870
	// counts them: CRLFs included, dot-stuffing and the final dot not. It is
	// announced with SIZE. 0 means no limit.
	MaxMessageBytes int64

	// CommandTimeout is how long a client may be silent between commands, 0
	// for the 5 minutes of RFC 5321, section 4.5.3.2.7.
	CommandTimeout time.Duration

	// DataTimeout is how long a client may be silent inside a message, 0 for
	// the 3 minutes of RFC 5321, section 4.5.3.2.5.
	DataTimeout time.Duration

	// WriteTimeout is how long a client may leave a reply unread, 0 for
	// 1 minute.
	WriteTimeout time.Duration

	// MaxErrors is how many lines that are no commands, or malformed ones, a
	// client may send before it is told 421, 0 for 10.
	MaxErrors int

	// MaxRefusals is how many commands of a client may be refused, recipients
	// above all, before it is told 421, 0 for 100.
	MaxRefusals int

	// Refused, where it is not nil, is called for each MAIL and RCPT that is
	// refused before the session sees it, with the line as it came.
	Refused func(c *Conn, line string, r Reply)

	// Closed, where it is not nil, is called once for each connection, when it
	// is closed.
	Closed func(*Conn)
}

func (c Config) withDefaults() Config {
	c.CommandTimeout = orDefault(c.CommandTimeout, 5*time.Minute)
	c.DataTimeout = orDefault(c.DataTimeout, 3*time.Minute)
	c.WriteTimeout = orDefault(c.WriteTimeout, time.Minute)
	if c.MaxErrors == 0 {
		c.MaxErrors = 10
	}
	if c.MaxRefusals == 0 {
		c.MaxRefusals = 100
	}
	return c
}

func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}

// Conn is a client's connection. Its net.Conn methods are for go-smtp's
// server; the session uses Command, SetReply, Body and CloseAfterReply. All of
// them are called by the one goroutine that serves the connection; Drain and
// Interrupt may be called by others.
type Conn struct {
	net.Conn
	cfg     *Config
	onClose func(*Conn)

	in  buffer
	out []byte

	cmd       Command // the command that is being answered
	line      []byte  // what go-smtp has yet to read of its canonical form
	reply     Reply   // the lines of the reply that go-smtp is writing
	override  Reply   // the session's reply to cmd
	helo      Command // the HELO or EHLO that holds
	inMail    bool    // a mail transaction is open
	body      *Body   // the message that is being read
	errors    int
	refusals  int
	noData    bool // DATA was refused: what follows may be a message all the same
	messages  int
	fault     Reply // the reply with which the gate itself has ended the session
	began     time.Time
	last      bool // the reply that is due is the last: close behind it
	ended     bool // nothing is read or written any more
	deaf      bool // writing has failed: the client hears nothing more
	draining  atomic.Bool
	killed    atomic.Bool
	closeOnce sync.Once
	closeErr  error
}

func newConn(c net.Conn, cfg *Config, onClose func(*Conn)) *Conn {
	return &Conn{Conn: c, cfg: cfg, onClose: onClose, began: time.Now()}
}

// Command is the command that is being answered.
func (c *Conn) Command() Command { return c.cmd }

// Helo is what the client called itself, and whether it did so with EHLO.
func (c *Conn) Helo() (name string, extended bool) {
	return c.helo.Arg, c.helo.Verb == "EHLO"
}

// Age is how long the connection has been open.
func (c *Conn) Age() time.Duration { return time.Since(c.began) }

// Messages is the number of messages that were begun: DATA commands answered
// with 354.
func (c *Conn) Messages() int { return c.messages }

// Fault is the reply with which the connection ended of itself: because of what
// the client sent, because it fell silent, or because the gate shuts down. It is
// the zero Reply where the client, or the session, has ended it.
func (c *Conn) Fault() Reply { return c.fault }

// SetReply sets the reply to the current command; what go-smtp writes for it is
// dropped. Only the final reply to DATA is replaced, never the 354.
func (c *Conn) SetReply(r Reply) { c.override = r }

// CloseAfterReply makes the reply to the current command the last thing that
// happens on the connection: nothing more is read.
func (c *Conn) CloseAfterReply() { c.last = true }

// Drain makes the connection end, with 421, as soon as no mail transaction is
// open: at once if the client is idle.
func (c *Conn) Drain() {
	c.draining.Store(true)
	c.Conn.SetReadDeadline(aLongTimeAgo)
}

// Interrupt makes every read from the client fail from now on, inside a
// message too, and waits no longer for a client that does not read. A session
// that waits for its next hop is not touched.
func (c *Conn) Interrupt() {
	c.killed.Store(true)
	c.Drain()
	c.Conn.SetWriteDeadline(time.Now().Add(lastWriteTimeout))
}

// lastWriteTimeout is how long a client may take to read its last reply once the
// connection was interrupted.
const lastWriteTimeout = time.Second

var aLongTimeAgo = time.Unix(1, 0)

// errInterrupted is what reads return after Interrupt.
var errInterrupted = errors.New("the gate is shutting down")

// Read gives go-smtp's server the next validated command line, never more than
// one, or the final dot of a message whose Body has been read.
func (c *Conn) Read(p []byte) (int, error) {
	if len(c.line) == 0 {
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.line)
	c.line = c.line[n:]
	return n, nil
}

// next finds the next line for go-smtp.
func (c *Conn) next() error {
	if c.body != nil {
		return c.finishBody()
	}
	for {
		if c.ended || c.last {
			return io.EOF
		}
		line, err := c.readLine()
		if err != nil {
			return c.endWith(err)
		}
		if reply := checkFraming(line); !reply.IsZero() {
			c.sayLast(reply)
			continue
		}
		cmd, reply := parseCommand(string(line))
		if reply.IsZero() {
			c.cmd, c.override = cmd, Reply{}
			c.line = append(c.line[:0], cmd.canonical()...)
			return nil
		}
		c.refuse(line, reply)
	}
}

// checkFraming looks at a line as it came, its CRLF dropped, for what RFC 5321,
// section 2.3.8 forbids. A client that frames its commands so that two servers
// may count them differently is not talked to any further.
func checkFraming(line []byte) Reply {
	for _, b := range line {
		switch b {
		case '\r':
			return NewReply(500, "5.5.2 Bare CR in a command")
		case '\n':
			return NewReply(500, "5.5.2 Commands must end in CRLF")
		case 0:
			return NewReply(500, "5.5.2 NUL in a command")
		}
	}
	return Reply{}
}

// refuse answers a command that goes no further. Where what follows may be no
// commands at all, it is the last answer: the chunk behind BDAT comes without
// waiting (RFC 3030, section 2), and header fields or HTTP mean that somebody
// is talking who does not listen.
func (c *Conn) refuse(line []byte, reply Reply) {
	if !reply.Positive() {
		c.errors++
	}
	if verb, _, _ := bytes.Cut(line, []byte(" ")); c.cfg.Refused != nil &&
		(bytes.EqualFold(verb, []byte("MAIL")) || bytes.EqualFold(verb, []byte("RCPT"))) {
		c.cfg.Refused(c, string(line), reply)
	}
	switch {
	case notCommands(line), c.noData:
		c.sayLast(reply)
	case c.errors < c.cfg.MaxErrors:
		c.out = reply.Append(c.out)
	default:
		c.out = reply.Append(c.out)
		c.sayLast(NewReply(421, "4.7.0 Too many errors"))
	}
}

// notCommands recognises a line behind which no commands can be expected.
func notCommands(line []byte) bool {
	verb, _, _ := bytes.Cut(line, []byte(" "))
	switch {
	case len(line) >= 4 && bytes.EqualFold(line[:4], []byte("BDAT")):
		return true
	case len(verb) > 1 && verb[len(verb)-1] == ':':
		return true
	}
	switch string(verb) {
	case "GET", "POST", "CONNECT":
		return true
	}
	return false
}

// sayLast queues a reply of our own and ends the session.
func (c *Conn) sayLast(r Reply) {
	c.out = r.Append(c.out)
	c.fault = r
	c.last = true
}

var errLineTooLong = fmt.Errorf("command line longer than %d bytes", MaxCommandLine)

// readLine returns the next line, without its CRLF; a line that ends in a bare
// LF keeps it, so that checkFraming finds it. It is valid until the next read.
func (c *Conn) readLine() ([]byte, error) {
	seen := 0
	for {
		data := c.in.bytes()
		if i := bytes.IndexByte(data[seen:], '\n'); i >= 0 && seen+i < MaxCommandLine {
			n := seen + i + 1
			c.in.discard(n)
			if n >= 2 && data[n-2] == '\r' {
				return data[:n-2], nil
			}
			return data[:n], nil
		}
		if len(data) >= MaxCommandLine {
			return nil, errLineTooLong
		}
		seen = len(data)
		if err := c.fill(c.cfg.CommandTimeout); err != nil {
			return nil, err
		}
	}
}

// endWith turns what went wrong between commands into the session's end.
func (c *Conn) endWith(err error) error {
	switch {
	case errors.Is(err, errNotRead):
	case err == errLineTooLong:
		c.sayLast(NewReply(500, "5.5.2 Command line too long"))
	case errors.Is(err, errInterrupted):
		c.sayLast(NewReply(421, "4.3.2 "+c.cfg.Hostname+" is shutting down, try again later"))
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.sayLast(NewReply(421, "4.4.2 "+c.cfg.Hostname+" waited too long, closing the connection"))
	}
	c.last = true
	return io.EOF
}

// fill flushes what is due to the client and reads more from it, waiting at
// most timeout.
func (c *Conn) fill(timeout time.Duration) error {
	if err := c.flush(); err != nil {
		return err
	}
	for {
		deadline := time.Now().Add(timeout)
		c.Conn.SetReadDeadline(deadline)
		// Drain sets its flag before it sets its deadline. If that deadline
		// was just overwritten, the flag is seen here.
		if c.killed.Load() || c.draining.Load() && !c.inMail && c.body == nil {
			return errInterrupted
		}
		n, err := c.in.readFrom(c.Conn, c.body != nil)
		if n > 0 {
			return nil
		}
		if errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(deadline) {
			continue // woken by Drain; the checks above decide
		}
		return err
	}
}

// Close flushes what is due and closes the connection. Where the client may
// still be sending, the connection is closed for writing first and what
// arrives is thrown away for a moment, since a reset would take the last reply
// away from it.
func (c *Conn) Close() error {
	c.closeOnce.Do(func() {
		if c.flush() == nil && c.last && !c.killed.Load() {
			c.linger()
		}
		c.closeErr = c.Conn.Close()
		c.in.release()
		c.ended = true
		if c.cfg.Closed != nil {
			c.cfg.Closed(c)
		}
		if c.onClose != nil {
			c.onClose(c) // Drain may return now
		}
	})
	return c.closeErr
}

// Bounds of linger.
const (
	lingerTime  = 2 * time.Second
	lingerBytes = 1 << 20
)

// linger half-closes the connection and discards until the client closes too,
// at most lingerTime and lingerBytes.
func (c *Conn) linger() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.Conn.SetReadDeadline(time.Now().Add(lingerTime))
	io.CopyN(io.Discard, c.Conn, lingerBytes)
}

// The deadlines of a connection are its own business: go-smtp's would span a
// whole message.

// SetDeadline does nothing.
func (c *Conn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (c *Conn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }
