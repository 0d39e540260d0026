package nexthop

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"spamgate/smtpfilter/wire"
)

// replyBuffer holds the longest reply line that wire.Reply accepts outside AUTH,
// with its CRLF.
const replyBuffer = 4096 + 2

// errUnasked reports bytes that answer no command. They would be taken for the
// reply to the next command, and every later reply for that of its predecessor, so
// the connection cannot be used any more.
var errUnasked = fmt.Errorf("%w: the next hop sent bytes that answer no command", wire.ErrBadReply)

// conn is a connection to the next hop.
type conn struct {
	net.Conn           // carries the dialogue: the socket, or TLS
	socket   net.Conn  // closing it interrupts everything
	tls      *tls.Conn // nil without TLS
	beneath  *tlsSocket
	replies  *bufio.Reader
	greeting wire.Reply
	verb     string          // EHLO, HELO or LHLO, which the server accepted
	offers   wire.Extensions // in the last reply to EHLO
	timeouts Timeouts

	lastClose   *atomic.Int64 // of the target, set when the connection is closed
	lastReply   *atomic.Int64 // of the target, set when the server replies
	proxied     endpoints     // of the PROXY header; zero if it, or its absence, names ourselves
	xclientSent bool
	identity    identity // sent with XCLIENT
	attributes  []string // of XCLIENT that were offered then

	// alive, if not nil, returns an error if the server does not answer at all.
	// See readSlowReply.
	alive func() error

	gone      context.Context // ends when the last client leaves; nil if another connection may use the same identity
	stopWatch func() bool     // stops watching gone, while the connection is kept

	mails      int    // MAIL commands accepted
	messages   int    // messages begun
	login      *login // the owner, or nil
	inAuth     bool   // an AUTH exchange is under way, whose lines may be longer
	reused     bool   // it was kept for another transaction
	errorCount int    // refusals and resets since the last delivery
	idleSince  time.Time
}

// maxErrors limits the errors on a kept connection without a delivery. Servers
// count the errors on a connection, slow down after some (Postfix: 10) and then
// hang up: one client's errors would harm another's mail.
const maxErrors = 8

func newConn(nc net.Conn, timeouts Timeouts) *conn {
	quick := wire.NewSocket(nc)
	return &conn{Conn: quick, socket: nc, replies: bufio.NewReaderSize(quick, replyBuffer), timeouts: timeouts,
		lastClose: new(atomic.Int64), lastReply: new(atomic.Int64)}
}

// Write writes within the timeout for one write.
func (c *conn) Write(p []byte) (int, error) {
	c.SetWriteDeadline(time.Now().Add(c.timeouts.Write))
	return c.Conn.Write(p)
}

// Close closes the socket at once, without QUIT.
func (c *conn) Close() error {
	c.lastClose.Store(time.Now().UnixNano())
	return c.socket.Close()
}

// during calls do, and closes the connection when ctx ends. It then returns the
// cause.
func (c *conn) during(ctx context.Context, do func() error) error {
	stop := context.AfterFunc(ctx, func() { c.Close() })
	err := do()
	if !stop() {
		err = context.Cause(ctx)
	}
	return err
}

// send writes commands, each with its CRLF, in one flight. There must be no
// unread reply.
func (c *conn) send(commands string) error {
	if c.surplus() {
		return errUnasked
	}
	_, err := io.WriteString(c, commands)
	return err
}

// readReply reads one whole reply within the timeout.
func (c *conn) readReply(timeout time.Duration) (wire.Reply, error) {
	c.SetReadDeadline(time.Now().Add(timeout))
	var reply wire.Reply
	for {
		line, err := c.readLine()
		if err != nil {
			return wire.Reply{}, err
		}
		last, err := reply.AppendLine(line)
		if err != nil {
			return wire.Reply{}, err
		}
		if last {
			c.lastReply.Store(time.Now().UnixNano())
			if refusal(reply) {
				c.errorCount++
			}
			return reply, nil
		}
	}
}

// readLine reads one line with its ending. The line is valid until the next read.
// Within AUTH it may be longer than the buffer.
func (c *conn) readLine() ([]byte, error) {
	line, err := c.replies.ReadSlice('\n')
	for most := replyBuffer; err == bufio.ErrBufferFull; {
		if c.inAuth {
			most = wire.MaxAuthLine
		}
		if len(line) >= most {
			return nil, fmt.Errorf("%w: a line of more than %d bytes", wire.ErrBadReply, most)
		}
		var part []byte
		begun := bytes.Clone(line)
		part, err = c.replies.ReadSlice('\n')
		line = append(begun, part...)
	}
	if err == io.EOF && len(line) > 0 {
		const most = 200
		return nil, fmt.Errorf("reply cut off after %q: %w", line[:min(len(line), most)], io.ErrUnexpectedEOF)
	}
	return line, err
}

// ask sends one command, without its CRLF, and reads the reply, which must be
// positive, a refusal, or have the code also (0: none).
func (c *conn) ask(command string, timeout time.Duration, also int) (wire.Reply, error) {
	if err := c.send(command + "\r\n"); err != nil {
		return wire.Reply{}, err
	}
	reply, err := c.readSlowReply(timeout)
	if err != nil {
		return wire.Reply{}, err
	}
	return reply, c.check(reply, also)
}

// readChecked reads the reply that ends an exchange: see check.
func (c *conn) readChecked(timeout time.Duration) (wire.Reply, error) {
	reply, err := c.readReply(timeout)
	if err == nil {
		err = c.check(reply, 0)
	}
	return reply, err
}

// check checks the reply that ends an exchange: it must be positive, a refusal, or
// have the code also. Only after a 421 may more bytes follow.
func (c *conn) check(reply wire.Reply, also int) error {
	if reply.Code != also && !reply.Positive() && !refusal(reply) {
		return unexpected(reply)
	}
	if reply.Code != codeClosing && c.surplus() {
		return errUnasked
	}
	return nil
}

// unexpected returns the error for a reply that does not fit the command.
func unexpected(reply wire.Reply) error {
	return fmt.Errorf("%w: unexpected %s", wire.ErrBadReply, reply)
}

// surplus reports whether bytes have arrived that nobody has read.
func (c *conn) surplus() bool {
	if c.replies.Buffered() > 0 {
		return true
	}
	if c.tls == nil {
		return false
	}
	pending, _ := c.pending(readHeld) // an error shows at the next read
	return pending
}

// codeClosing is the reply after which a server closes the connection, whatever
// the command (RFC 5321, section 3.8).
const codeClosing = 421

func refusal(r wire.Reply) bool { return r.Temporary() || r.Permanent() }

// quiet reports whether the connection is open and has nothing to read, as it must
// be while the next hop owes no reply. It looks each time, however recent the last
// reply is: the gate would take a surplus reply for the one to the next command,
// and a surplus 250 for the one to a message.
func (c *conn) quiet() (bool, error) {
	if c.replies.Buffered() > 0 {
		return false, nil
	}
	var pending bool
	var err error
	if c.tls == nil {
		pending, err = wire.Pending(c.socket)
	} else {
		c.SetReadDeadline(time.Time{}) // an old deadline would end the read of TLS
		pending, err = c.pending(readArrived)
	}
	return !pending && err == nil, err
}

// quit sends QUIT, waits for the reply, and closes the connection.
func (c *conn) quit(timeout time.Duration) {
	if _, err := io.WriteString(c, "QUIT\r\n"); err == nil {
		c.readReply(timeout)
	}
	c.Close()
}
