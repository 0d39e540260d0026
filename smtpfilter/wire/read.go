package wire

import (
	"bytes"
	"errors"
	"io"
	"os"
	"time"
)

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
		return c.body.endData()
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

var errLineTooLong = errors.New("command line too long")

// readLine returns the next command line without its CRLF. A bare LF stays, so that
// checkFraming finds it. The line is valid until the next read. The whole line must
// come within CommandTimeout.
func (c *Conn) readLine() ([]byte, error) {
	return c.readLineOf(MaxCommandLine, c.offers.mechanisms != "")
}

// readLineOf reads like readLine a line of at most limit bytes. With auth AUTH is offered.
func (c *dialogue) readLineOf(limit int, auth bool) ([]byte, error) {
	defer func() { c.longLine = false }()
	var deadline time.Time
	seen := 0
	for {
		data := c.in.bytes()
		if auth && limit < MaxAuthLine && beginsAuth(data) {
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
func (c *dialogue) endWith(err error) error {
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

func (c *dialogue) shuttingDown() Reply {
	return NewReply(421, "4.3.2 "+c.cfg.Hostname+" is shutting down, try again later")
}

// fill flushes the replies and reads more from the client, waiting at most timeout.
func (c *dialogue) fill(timeout time.Duration) error {
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
