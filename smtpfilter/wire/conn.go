package wire

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Conn is a client's connection. Its net.Conn methods are for go-smtp's server; the
// session uses Command, SetReply, Body and CloseAfterReply. Only the goroutine that
// serves the connection may call them. Others may call Drain and Interrupt.
type Conn struct {
	dialogue
	identity
	cfg     *Config
	onClose func(*Conn)

	opened     bool   // open was called
	turnedAway bool   // by Config.Connected
	offers     offers // in the reply to the last EHLO or HELO
	authed     bool   // AUTH has succeeded
	pipelined  bool   // Config.Noticed was called for forbidden pipelining
	began      time.Time
	panicked   error // see contain
	owner      any
	closeOnce  sync.Once
	closeErr   error
}

// pipe is the socket of a connection, with what was read and not used, and what is to be sent.
type pipe struct {
	net.Conn   // the socket, used directly for deadlines and closing only
	cfg        *Config
	stream     net.Conn  // the client's bytes: Conn, or TLS over it
	tls        *tls.Conn // nil without TLS
	in         buffer
	out        []byte
	unwritable bool // a write has failed: the client receives nothing more
	draining   atomic.Bool
	killed     atomic.Bool
}

// dialogue is the exchange of commands and replies.
type dialogue struct {
	pipe
	transaction

	cmd      Command // the command that is being answered
	line     string  // what go-smtp has yet to read of its canonical form
	longLine bool    // the line that is being read may need a large buffer
	reply    Reply   // the lines of the reply that go-smtp is writing
	override Reply   // the session's reply to cmd

	errors   int
	refusals int
	idle     int // commands since the last message that do not lead to one
	messages int

	fault Reply // the reply with which the gate itself has ended the session
	last  bool  // the next reply is the last: close after it
	ended bool  // read and write nothing more
}

// transaction is the state of a mail transaction; zero if none is open.
type transaction struct {
	inMail  bool  // one is open
	utf8    bool  // … and its MAIL has SMTPUTF8
	binary  bool  // its message may hold any byte
	body    *Body // the message that is being read
	surplus int   // recipients above the limit

	dataRefused  bool // the message may follow nevertheless
	chunkRefused bool // so are the chunks that follow
}

func newConn(c net.Conn, cfg *Config, onClose func(*Conn)) *Conn {
	c = NewSocket(c)
	return &Conn{
		cfg: cfg, onClose: onClose, began: time.Now(), identity: identity{cfg: cfg},
		dialogue: dialogue{pipe: pipe{Conn: c, stream: c, cfg: cfg}},
	}
}

// Command returns the command that is being answered.
func (c *dialogue) Command() Command { return c.cmd }

// SetOwner stores a value for Owner, so that hooks of Config find their session.
func (c *Conn) SetOwner(v any) { c.owner = v }

// Owner returns the value of SetOwner, or nil.
func (c *Conn) Owner() any { return c.owner }

// Age returns how long the connection has been open.
func (c *Conn) Age() time.Duration { return time.Since(c.began) }

// Messages returns the number of messages that were begun: DATA commands answered
// with 354, and accepted first BDAT commands.
func (c *dialogue) Messages() int { return c.messages }

// Fault returns the reply with which the gate ended the connection: for what the
// client sent, after a timeout, or in a shutdown. It is zero if the client or the
// session ended it.
func (c *dialogue) Fault() Reply { return c.fault }

// Gone reports whether the client has closed the connection, as far as is known. It
// reads what the client sent before that into the buffer, and does not wait for more.
func (c *dialogue) Gone() bool {
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
func (c *dialogue) SetReply(r Reply) { c.override = c.forClient(r) }

// CloseAfterReply closes the connection after the reply to the current command.
// Nothing more is read.
func (c *Conn) CloseAfterReply() {
	if c.body == nil || !c.body.chunk.answered {
		c.last = true
	}
}

// Drain ends the connection with 421 as soon as no mail transaction is open.
func (c *pipe) Drain() {
	c.draining.Store(true)
	c.Conn.SetReadDeadline(aLongTimeAgo)
}

// Interrupt makes all later reads from the client fail, also inside a message, and
// limits the wait for a client that does not read. It does not interrupt a session
// that waits for its next hop.
func (c *pipe) Interrupt() {
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
func (c *pipe) linger() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.Conn.SetReadDeadline(time.Now().Add(lingerTime))
	io.CopyN(io.Discard, c.Conn, lingerBytes)
}

// SetDeadline does nothing: go-smtp's deadlines would span a whole message.
func (c *pipe) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (c *pipe) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (c *pipe) SetWriteDeadline(time.Time) error { return nil }

// contain recovers from a panic and ends this connection without another reply.
// go-smtp recovers only within its own commands: not before the greeting, nor in TLS,
// AUTH, the gate's own commands, and the hooks that they call. Read returns the error
// with the stack from then on, which go-smtp logs.
func (c *Conn) contain(err *error) {
	if p := recover(); p != nil {
		c.panicked = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		c.ended, c.out = true, nil
		*err = c.panicked
	}
}
