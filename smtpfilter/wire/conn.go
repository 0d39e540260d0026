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

// Conn is a client's connection. Its net.Conn methods are for go-smtp's
// server; the session uses Command, SetReply, Body and CloseAfterReply. All of
// them are called by the one goroutine that serves the connection; Drain and
// Interrupt may be called by others.
type Conn struct {
	net.Conn // the socket: deadlines and closing alone go to it directly
	cfg      *Config
	onClose  func(*Conn)

	stream net.Conn  // the client's bytes: Conn, or TLS over it
	tls    *tls.Conn // nil without TLS
	in     buffer
	out    []byte

	opened     bool           // go-smtp has begun: see open
	turnedAway bool           // by Config.Connected, before it has said anything
	peer       netip.AddrPort // who connects: the socket's peer, or whom PROXY names
	local      netip.AddrPort // where peer has connected to
	named      bool           // PROXY names peer
	told       *Client        // whom XCLIENT names
	passed     *Client        // whom XFORWARD names
	offers     offers         // what the last EHLO or HELO was answered with

	cmd       Command // the command that is being answered
	line      string  // what go-smtp has yet to read of its canonical form
	reply     Reply   // the lines of the reply that go-smtp is writing
	override  Reply   // the session's reply to cmd
	helo      Command // the HELO or EHLO that holds
	inMail    bool    // a mail transaction is open
	utf8      bool    // … and its MAIL had SMTPUTF8
	body      *Body   // the message that is being read
	binary    bool    // the transaction's message may hold any byte
	errors    int
	refusals  int
	idle      int  // commands since the last message that bring none nearer
	surplus   int  // recipients that were too many for the transaction
	authed    bool // AUTH has succeeded
	noticed   bool // Config.Noticed has heard of forbidden pipelining
	longLine  bool // the line that is being read may need a large buffer
	mailed    bool // a MAIL was accepted since XFORWARD
	noData    bool // DATA was refused: what follows may be a message all the same
	chunkLost bool // a chunk was refused: those that follow are parts of nothing
	messages  int
	fault     Reply // the reply with which the gate itself has ended the session
	began     time.Time
	last      bool  // the reply that is due is the last: close behind it
	ended     bool  // nothing is read or written any more
	deaf      bool  // writing has failed: the client hears nothing more
	panicked  error // see contain
	draining  atomic.Bool
	killed    atomic.Bool
	owner     any
	closeOnce sync.Once
	closeErr  error
}

func newConn(c net.Conn, cfg *Config, onClose func(*Conn)) *Conn {
	c = NewSocket(c)
	return &Conn{Conn: c, stream: c, cfg: cfg, onClose: onClose, began: time.Now()}
}

// Command is the command that is being answered.
func (c *Conn) Command() Command { return c.cmd }

// Helo is what the client called itself, and whether it did so with EHLO.
func (c *Conn) Helo() (name string, extended bool) {
	return c.helo.Arg, c.helo.Verb == "EHLO"
}

// SetOwner keeps a value for whoever serves the connection; Owner gives it back.
// Hooks of Config find their session by it.
func (c *Conn) SetOwner(v any) { c.owner = v }

// Owner is what SetOwner was given, nil before.
func (c *Conn) Owner() any { return c.owner }

// Age is how long the connection has been open.
func (c *Conn) Age() time.Duration { return time.Since(c.began) }

// Messages is the number of messages that were begun: DATA commands answered
// with 354, and first BDAT commands that were taken.
func (c *Conn) Messages() int { return c.messages }

// Fault is the reply with which the connection ended of itself: because of what
// the client sent, because it fell silent, or because the gate shuts down. It is
// the zero Reply where the client, or the session, has ended it.
func (c *Conn) Fault() Reply { return c.fault }

// Gone reports whether the client is known to have closed the connection. It reads what
// the client has sent before that, as far as there is room, and does not wait for more.
// For want of a way to look (see Pending) a client may be gone without being known so.
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

// SetReply sets the reply to the current command; what go-smtp writes for it is
// dropped. Only the final reply to DATA is replaced, never the 354. The client
// gets it bounded and printable: see MaxReplyLines, MaxReplyLine and MaxReplyBytes.
func (c *Conn) SetReply(r Reply) { c.override = c.forClient(r) }

// CloseAfterReply makes the reply to the current command the last thing that
// happens on the connection: nothing more is read.
func (c *Conn) CloseAfterReply() {
	if c.body == nil || !c.body.chunk.answered {
		c.last = true
	}
}

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

// next finds the next line for go-smtp.
func (c *Conn) next() error {
	if c.body != nil && c.body.chunk.refusal.IsZero() {
		return c.finishBody()
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
		if c.idles(cmd) || c.carryOut(cmd, line) {
			continue
		}
		c.cmd, c.override = cmd, Reply{}
		if c.order() {
			c.line = cmd.canonical()
			return nil
		}
	}
}

// order refuses what go-smtp would take, and only the wire layer can know to be
// wrong: a chunk of a message of which one was refused, and DATA for a message
// that may hold CRLF.CRLF (RFC 3030, section 3).
func (c *Conn) order() bool {
	switch {
	case c.cmd.Verb == "BDAT" && c.noData:
		c.refuse([]byte("BDAT"), NewReply(503, "5.5.1 DATA was refused"))
	case c.cmd.Verb == "BDAT" && c.chunkLost:
		c.refuseChunk(NewReply(503, "5.5.1 An earlier chunk was refused"))
	case c.cmd.Verb == "DATA" && c.binary:
		c.out = NewReply(503, "5.5.1 A BINARYMIME message must be sent with BDAT").Append(c.out)
		c.refusals++
		c.dataRefused()
		c.limitRefusals()
	default:
		return true
	}
	return false
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
// commands at all, it is the last answer: the chunk behind a BDAT that can't be
// read comes without waiting (RFC 3030, section 2), and header fields or HTTP mean that somebody
// is talking who does not listen.
func (c *Conn) refuse(line []byte, reply Reply) {
	c.tellRefused(line, reply)
	if c.erred(reply) {
		return
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

// tellRefused tells Config.Refused of a MAIL or RCPT.
func (c *Conn) tellRefused(line []byte, reply Reply) {
	if verb, _, _ := bytes.Cut(line, []byte(" ")); c.cfg.Refused != nil &&
		(bytes.EqualFold(verb, []byte("MAIL")) || bytes.EqualFold(verb, []byte("RCPT"))) {
		c.cfg.Refused(c, string(line), reply)
	}
}

// erred counts a line that is no command, or a malformed one, unless its reply
// is positive. It reports whether Config.Erred has ended the session over it.
func (c *Conn) erred(reply Reply) bool {
	if reply.Positive() {
		return false
	}
	c.errors++
	if c.cfg.Erred == nil {
		return false
	}
	instead := c.cfg.Erred(c)
	if !instead.IsZero() {
		c.sayLast(instead)
	}
	return c.last
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
	case "GET", "POST", "CONNECT", "PROXY":
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

var errLineTooLong = errors.New("command line too long")

// readLine returns the next command line, without its CRLF; a line that ends in
// a bare LF keeps it, so that checkFraming finds it. It is valid until the next
// read. The whole line must come within CommandTimeout.
func (c *Conn) readLine() ([]byte, error) { return c.readLineOf(MaxCommandLine) }

// readLineOf is readLine for a line of at most limit bytes.
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

// endWith turns what went wrong between commands into the session's end.
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
		n, err := c.in.readFrom(c.stream, c.body != nil || c.longLine)
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
// away from it. Not for those that are turned away at once: nothing counts them,
// and they have no business to talk yet.
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
