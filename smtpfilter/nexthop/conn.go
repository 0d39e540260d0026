package nexthop

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"spamgate/smtpfilter/wire"
)

// replyBuffer holds the longest reply line that wire.Reply takes outside AUTH, with
// its CRLF.
const replyBuffer = 4096 + 2

// errUnasked is about bytes that answer nothing. They would be taken for the
// reply to the next command, and every reply after them for its
// predecessor's: the connection is of no use any more.
var errUnasked = fmt.Errorf("%w: the next hop sent more than it was asked for", wire.ErrBadReply)

// conn is one connection to the next hop. Commands and replies of transactions
// go over it directly. The smtp.Client beneath the same socket does what
// surrounds them: greeting, EHLO or HELO, QUIT.
type conn struct {
	net.Conn          // what is spoken over: the socket, or TLS
	socket   net.Conn // closing it interrupts everything
	tls      *tls.Conn
	sluice   *sluice // between tls and socket; nil without TLS
	replies  *bufio.Reader
	greeting wire.Reply
	verb     string          // EHLO, HELO or LHLO, which the server accepted
	offers   wire.Extensions // in the last reply to EHLO
	timeouts Timeouts

	ended      *atomic.Int64 // of the target, set when the connection is closed
	proxied    endpoints     // of the PROXY header; zero where it, or its absence, names ourselves
	told       bool          // XCLIENT was sent
	identity   identity      // that it told
	attributes []string      // that it had

	// stillThere, where it is not nil, asks whether the server answers at all. Its
	// error says that it does not. See readPatiently.
	stillThere func() error

	answered *atomic.Int64 // when the server has answered on any connection of the target

	gone   context.Context // of the client that it was told last; nil where another may bring the same
	unheed func() bool     // stops what the end of gone does, while it is kept

	mails     int    // MAIL commands accepted
	messages  int    // messages begun
	login     *login // that it belongs to, or nil
	inAuth    bool   // an AUTH exchange is under way, whose lines may be longer
	reused    bool   // it was kept for another transaction
	wear      int    // refusals and resets since the last delivery
	idleSince time.Time
}

// maxWear ends a kept connection that brings no mail. Servers count the errors on
// a connection, slow down after some (Postfix: 10) and then hang up: what one
// client did another's mail would pay for.
const maxWear = 8

func newConn(nc net.Conn, timeouts Timeouts) *conn {
	quick := wire.NewSocket(nc)
	return &conn{Conn: quick, socket: nc, replies: bufio.NewReaderSize(quick, replyBuffer), timeouts: timeouts, answered: new(atomic.Int64)}
}

// Write writes within the timeout for one write.
func (c *conn) Write(p []byte) (int, error) {
	c.SetWriteDeadline(time.Now().Add(c.timeouts.Write))
	return c.Conn.Write(p)
}

// Close closes the socket, without a word. It does not wait.
func (c *conn) Close() error {
	if c.ended != nil {
		c.ended.Store(time.Now().UnixNano())
	}
	return c.socket.Close()
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
			c.noteAnswer()
			if refusal(reply) {
				c.wear++
			}
			return reply, nil
		}
	}
}

// noteAnswer notes for the whole target that the server has said something.
func (c *conn) noteAnswer() { c.answered.Store(time.Now().UnixNano()) }

// readLine reads one line with its ending. The line is valid until the next read.
func (c *conn) readLine() ([]byte, error) {
	line, err := c.replies.ReadSlice('\n')
	if err == bufio.ErrBufferFull && c.inAuth {
		return c.readLongLine(line)
	}
	if err == bufio.ErrBufferFull {
		return nil, fmt.Errorf("%w: a line of more than %d bytes", wire.ErrBadReply, replyBuffer)
	}
	if err == io.EOF && len(line) > 0 {
		const most = 200
		return nil, fmt.Errorf("reply cut off after %q: %w", line[:min(len(line), most)], io.ErrUnexpectedEOF)
	}
	return line, err
}

// readLongLine is readLine for a challenge of AUTH that is longer than the buffer, of
// which it is given the beginning.
func (c *conn) readLongLine(begun []byte) ([]byte, error) {
	line := slices.Clone(begun)
	for {
		part, err := c.replies.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > wire.MaxAuthLine:
			return nil, fmt.Errorf("%w: a challenge of more than %d bytes", wire.ErrBadReply, wire.MaxAuthLine)
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

// ask sends one command, without its CRLF, and reads the reply, which must be
// positive, a refusal, or have the code that is also wanted (0: none).
func (c *conn) ask(command string, timeout time.Duration, also int) (wire.Reply, error) {
	if err := c.send(command + "\r\n"); err != nil {
		return wire.Reply{}, err
	}
	reply, err := c.readPatiently(timeout)
	if err != nil {
		return wire.Reply{}, err
	}
	return reply, c.check(reply, also)
}

// check ends an exchange: the reply must fit the command, and nothing may
// follow it.
func (c *conn) check(reply wire.Reply, also int) error {
	if reply.Code != also && !reply.Positive() && !refusal(reply) {
		return fmt.Errorf("%w: unexpected %s", wire.ErrBadReply, reply)
	}
	if reply.Code != codeClosing && c.surplus() {
		return errUnasked
	}
	return nil
}

// surplus reports whether bytes were received that nobody has read.
func (c *conn) surplus() bool {
	if c.replies.Buffered() > 0 {
		return true
	}
	if c.tls == nil {
		return false
	}
	pending, _ := c.pending(sluiceClosed) // an error shows at the next read
	return pending
}

// codeClosing is the reply after which a server closes the connection, whatever
// was asked (RFC 5321, section 3.8).
const codeClosing = 421

func refusal(r wire.Reply) bool { return r.Temporary() || r.Permanent() }

// quiet reports whether the connection is open and silent, as it must be while
// the next hop has nothing to answer. It looks each time, however lately the next
// hop has answered: a reply too many is taken for the one to what is said next, and
// a 250 for the one to a message.
func (c *conn) quiet() (bool, error) {
	if c.replies.Buffered() > 0 {
		return false, nil
	}
	var pending bool
	var err error
	if c.tls == nil {
		pending, err = wire.Pending(c.socket)
	} else {
		c.SetReadDeadline(time.Time{}) // for what TLS reads, one that has passed would count
		pending, err = c.pending(sluicePending)
	}
	return !pending && err == nil, err
}

// quit says QUIT and closes the connection. A failure changes nothing: it is
// closed.
func (c *conn) quit(timeout time.Duration) {
	if _, err := io.WriteString(c, "QUIT\r\n"); err == nil {
		c.readReply(timeout)
	}
	c.Close()
}
