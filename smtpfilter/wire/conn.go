package wire

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Conn is a client's connection. Its net.Conn methods are for go-smtp's server; the
// session uses Command, SetReply, Body and CloseAfterReply. Only the goroutine that
// serves the connection may call them. Others may call Drain and Interrupt.
type Conn struct {
	net.Conn // the socket, used directly for deadlines and closing only
	cfg      *Config
	onClose  func(*Conn)

	stream net.Conn  // the client's bytes: Conn, or TLS over it
	tls    *tls.Conn // nil without TLS
	in     buffer
	out    []byte

	opened     bool           // open was called
	turnedAway bool           // by Config.Connected
	peer       netip.AddrPort // the client: the socket's peer, or the one that PROXY names
	local      netip.AddrPort // the address that peer connected to
	named      bool           // PROXY names peer
	xclient    *Client        // the client that XCLIENT names
	xforward   *Client        // the client that XFORWARD names
	offers     offers         // in the reply to the last EHLO or HELO

	cmd       Command // the command that is being answered
	line      string  // what go-smtp has yet to read of its canonical form
	reply     Reply   // the lines of the reply that go-smtp is writing
	override  Reply   // the session's reply to cmd
	helo      Command // the last HELO or EHLO
	inMail    bool    // a mail transaction is open
	utf8      bool    // … and its MAIL has SMTPUTF8
	body      *Body   // the message that is being read
	binary    bool    // the transaction's message may hold any byte
	errors    int
	refusals  int
	idle      int  // commands since the last message that do not lead to one
	surplus   int  // recipients above the limit in this transaction
	authed    bool // AUTH has succeeded
	pipelined bool // Config.Noticed was called for forbidden pipelining
	longLine  bool // the line that is being read may need a large buffer
	mailSeen  bool // a MAIL was accepted since XFORWARD

	dataRefused  bool // the message may follow nevertheless
	chunkRefused bool // so are the chunks that follow

	messages   int
	fault      Reply // the reply with which the gate itself has ended the session
	began      time.Time
	last       bool  // the next reply is the last: close after it
	ended      bool  // read and write nothing more
	unwritable bool  // a write has failed: the client receives nothing more
	panicked   error // see contain
	draining   atomic.Bool
	killed     atomic.Bool
	owner      any
	closeOnce  sync.Once
	closeErr   error
}

func newConn(c net.Conn, cfg *Config, onClose func(*Conn)) *Conn {
	c = NewSocket(c)
	return &Conn{Conn: c, stream: c, cfg: cfg, onClose: onClose, began: time.Now()}
}

// Command returns the command that is being answered.
func (c *Conn) Command() Command { return c.cmd }

// Helo returns the client's name in HELO or EHLO, and whether it was EHLO.
func (c *Conn) Helo() (name string, extended bool) {
	return c.helo.Arg, c.helo.Verb == "EHLO"
}

// SetOwner stores a value for Owner, so that hooks of Config find their session.
func (c *Conn) SetOwner(v any) { c.owner = v }

// Owner returns the value of SetOwner, or nil.
func (c *Conn) Owner() any { return c.owner }

// Age returns how long the connection has been open.
func (c *Conn) Age() time.Duration { return time.Since(c.began) }

// Messages returns the number of messages that were begun: DATA commands answered
// with 354, and accepted first BDAT commands.
func (c *Conn) Messages() int { return c.messages }

// Fault returns the reply with which the gate ended the connection: for what the
// client sent, after a timeout, or in a shutdown. It is zero if the client or the
// session ended it.
func (c *Conn) Fault() Reply { return c.fault }

// Gone reports whether the client has closed the connection, as far as is known. It
// reads what the client sent before that into the buffer, and does not wait for more.
func (c *Conn) Gone() bool {
	for !c.in.full() {
		pending, err := Pending(c.Conn)
		if err == nil && pending {
			err = c.fill(goneTimeout)
		}
		if err != nil {
			return !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, errInterrupted)
		}
		if !pending {
			return false
		}
	}
	return false
}

// goneTimeout is how long Gone waits for the rest of a TLS record.
const goneTimeout = time.Second

// SetReply sets the reply to the current command, in place of go-smtp's. It never
// replaces the 354 to DATA. The client receives it limited and printable: see
// MaxReplyLines, MaxReplyLine and MaxReplyBytes.
func (c *Conn) SetReply(r Reply) { c.override = c.forClient(r) }

// CloseAfterReply closes the connection after the reply to the current command.
// Nothing more is read.
func (c *Conn) CloseAfterReply() {
	if c.body == nil || !c.body.chunk.answered {
		c.last = true
	}
}

// Drain ends the connection with 421 as soon as no mail transaction is open.
func (c *Conn) Drain() {
	c.draining.Store(true)
	c.Conn.SetReadDeadline(aLongTimeAgo)
}

// Interrupt makes all later reads from the client fail, also inside a message, and
// limits the wait for a client that does not read. It does not interrupt a session
// that waits for its next hop.
func (c *Conn) Interrupt() {
	c.killed.Store(true)
	c.Drain()
	c.Conn.SetWriteDeadline(time.Now().Add(lastWriteTimeout))
}

// lastWriteTimeout is how long a client may take to read its last reply after
// Interrupt.
const lastWriteTimeout = time.Second

var aLongTimeAgo = time.Unix(1, 0)

// errInterrupted is the error of reads after Interrupt.
var errInterrupted = errors.New("the gate is shutting down")

// Read returns the next validated command line to go-smtp's server, never more than
// one, or the final dot of a message whose Body has been read.
func (c *Conn) Read(p []byte) (n int, err error) {
	if c.panicked != nil {
		return 0, c.panicked
	}
	defer c.contain(&err)
	if len(c.line) == 0 {
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	n = copy(p, c.line)
	c.line = c.line[n:]
	return n, nil
}

// next prepares the next line for go-smtp.
func (c *Conn) next() error {
	if c.body != nil && c.body.chunk.refusal.IsZero() {
		return c.endBody()
	}
	for {
		if c.body != nil {
			if err := c.endRefused(); err != nil {
				return c.endWith(err)
			}
		}
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
		cmd, reply := parseCommand(string(line), c.terms())
		if !reply.IsZero() {
			c.refuse(line, reply)
			continue
		}
		if c.countIdle(cmd) || c.execute(cmd, line) {
			continue
		}
		c.cmd, c.override = cmd, Reply{}
		if c.checkOrder() {
			c.line = cmd.canonical()
			return nil
		}
	}
}

// checkOrder refuses commands that go-smtp would wrongly accept: a chunk after a
// refused one, and DATA for a message that may hold CRLF.CRLF (RFC 3030, section 3).
func (c *Conn) checkOrder() bool {
	switch {
	case c.cmd.Verb == "BDAT" && c.dataRefused:
		c.refuse([]byte("BDAT"), NewReply(503, "5.5.1 DATA was refused"))
	case c.cmd.Verb == "BDAT" && c.chunkRefused:
		c.refuseChunk(NewReply(503, "5.5.1 An earlier chunk was refused"))
	case c.cmd.Verb == "DATA" && c.binary:
		c.out = NewReply(503, "5.5.1 A BINARYMIME message must be sent with BDAT").Append(c.out)
		c.refusals++
		c.refusedDATA()
		c.limitRefusals()
	default:
		return true
	}
	return false
}

// checkFraming checks a line without its CRLF for what RFC 5321, section 2.3.8
// forbids. Two servers may count such commands differently, so the session ends.
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

// refuse answers a command that go-smtp does not see. If what follows may not be
// commands, the session ends: the chunk after an invalid BDAT comes without waiting
// (RFC 3030, section 2), and a client that sends header fields or HTTP does not read
// replies.
func (c *Conn) refuse(line []byte, reply Reply) {
	c.reportRefused(line, reply)
	if c.erred(reply) {
		return
	}
	switch {
	case notCommands(line), c.dataRefused:
		c.sayLast(reply)
	case c.errors < c.cfg.MaxErrors:
		c.out = reply.Append(c.out)
	default:
		c.out = reply.Append(c.out)
		c.sayLast(NewReply(421, "4.7.0 Too many errors"))
	}
}

// reportRefused calls Config.Refused for a MAIL or RCPT.
func (c *Conn) reportRefused(line []byte, reply Reply) {
	if verb, _, _ := bytes.Cut(line, []byte(" ")); c.cfg.Refused != nil &&
		(bytes.EqualFold(verb, []byte("MAIL")) || bytes.EqualFold(verb, []byte("RCPT"))) {
		c.cfg.Refused(c, string(line), reply)
	}
}

// erred counts an invalid command, unless its reply is positive. It reports whether
// Config.Erred has ended the session.
func (c *Conn) erred(reply Reply) bool {
	if reply.Positive() {
		return false
	}
	c.errors++
	if c.cfg.Erred == nil {
		return false
	}
	if instead := c.cfg.Erred(c); !instead.IsZero() {
		c.sayLast(instead)
	}
	return c.last
}

// notCommands reports whether no commands can be expected after a line.
func notCommands(line []byte) bool {
	verb, _, _ := bytes.Cut(line, []byte(" "))
	switch string(verb) {
	case "GET", "POST", "CONNECT", "PROXY":
		return true
	}
	return len(line) >= 4 && bytes.EqualFold(line[:4], []byte("BDAT")) || len(verb) > 1 && verb[len(verb)-1] == ':'
}

// sayLast queues a reply and ends the session.
func (c *Conn) sayLast(r Reply) {
	c.out = r.Append(c.out)
	c.fault = r
	c.last = true
}

var errLineTooLong = errors.New("command line too long")

// readLine returns the next command line without its CRLF. A bare LF stays, so that
// checkFraming finds it. The line is valid until the next read. The whole line must
// come within CommandTimeout.
func (c *Conn) readLine() ([]byte, error) { return c.readLineOf(MaxCommandLine) }

// readLineOf reads like readLine a line of at most limit bytes.
func (c *Conn) readLineOf(limit int) ([]byte, error) {
	defer func() { c.longLine = false }()
	var deadline time.Time
	seen := 0
	for {
		data := c.in.bytes()
		if limit < MaxAuthLine && c.beginsAuth(data) {
			limit = MaxAuthLine
		}
		if i := bytes.IndexByte(data[seen:], '\n'); i >= 0 && seen+i < limit {
			n := seen + i + 1
			c.in.discard(n)
			if n >= 2 && data[n-2] == '\r' {
				return data[:n-2], nil
			}
			return data[:n], nil
		}
		if len(data) >= limit {
			return nil, errLineTooLong
		}
		seen = len(data)
		c.longLine = seen >= MaxCommandLine
		if deadline.IsZero() {
			deadline = time.Now().Add(c.cfg.CommandTimeout)
		}
		if err := c.fill(time.Until(deadline)); err != nil {
			return nil, err
		}
	}
}

// endWith ends the session after an error between commands.
func (c *Conn) endWith(err error) error {
	switch {
	case errors.Is(err, errNotRead):
	case err == errLineTooLong:
		c.sayLast(NewReply(500, "5.5.2 Command line too long"))
	case errors.Is(err, errInterrupted):
		c.sayLast(c.shuttingDown())
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.sayLast(NewReply(421, "4.4.2 "+c.cfg.Hostname+" waited too long, closing the connection"))
	}
	c.last = true
	return io.EOF
}

func (c *Conn) shuttingDown() Reply {
	return NewReply(421, "4.3.2 "+c.cfg.Hostname+" is shutting down, try again later")
}

// fill flushes the replies and reads more from the client, waiting at most timeout.
func (c *Conn) fill(timeout time.Duration) error {
	if err := c.flush(); err != nil {
		return err
	}
	for {
		deadline := time.Now().Add(timeout)
		c.Conn.SetReadDeadline(deadline)
		// Drain sets its flag before its deadline: if that deadline was just
		// overwritten, the flag is set.
		if c.killed.Load() || c.draining.Load() && !c.inMail && c.body == nil {
			return errInterrupted
		}
		n, err := c.in.readFrom(c.stream, c.body != nil || c.longLine)
		if n > 0 {
			return nil
		}
		if errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(deadline) {
			continue // Drain has set the deadline
		}
		return err
	}
}

// Close flushes the replies and closes the connection. After a last reply of the gate
// it lingers first, because a reset could destroy that reply while the client is still
// sending. It does not linger for clients that Connected refuses: no limit counts
// them.
func (c *Conn) Close() error {
	c.closeOnce.Do(func() {
		if c.flush() == nil && !c.killed.Load() {
			c.closeNotify()
			if c.last && !c.turnedAway {
				c.linger()
			}
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

// Limits of linger.
const (
	lingerTime  = 2 * time.Second
	lingerBytes = 1 << 20
)

// linger closes the connection for writing and discards what arrives until the client
// closes too, at most lingerTime and lingerBytes.
func (c *Conn) linger() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.Conn.SetReadDeadline(time.Now().Add(lingerTime))
	io.CopyN(io.Discard, c.Conn, lingerBytes)
}

// SetDeadline does nothing: go-smtp's deadlines would span a whole message.
func (c *Conn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (c *Conn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }
