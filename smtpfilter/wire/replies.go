package wire

import (
	"errors"
	"fmt"
	"time"
)

// This file is the way back to the client: what go-smtp writes, exchanged for
// what the session says, and sent when the client has to be waited for.

// Write takes go-smtp's replies, a line at a time.
func (c *Conn) Write(p []byte) (int, error) {
	last, err := c.reply.AppendLine(p)
	if err != nil {
		return 0, err
	}
	if last {
		reply := c.reply
		c.reply = Reply{}
		if !c.ended {
			c.finishReply(reply)
		}
	}
	return len(p), nil
}

// finishReply queues the reply to the current command.
func (c *Conn) finishReply(r Reply) {
	verb := c.cmd.Verb
	intermediate := r.Code == 354
	if !intermediate && !c.override.IsZero() {
		r, c.override = c.override, Reply{}
	} else {
		r = c.ownWords(r)
	}
	c.out = r.Append(c.out)
	if r.Permanent() || r.Temporary() {
		c.refusals++
	}

	switch {
	case intermediate:
		c.messages++
		c.noData = false
		c.body = newBody(c)
		return
	case verb == "MAIL" && r.Positive():
		c.inMail, c.noData = true, false
	case verb == "DATA" && c.body != nil, verb == "RSET":
		c.inMail, c.noData = false, false
		c.body = nil
	case (verb == "HELO" || verb == "EHLO") && r.Positive():
		c.inMail, c.noData = false, false
		c.helo = c.cmd
	case verb == "DATA" && (c.noData || len(c.in.bytes()) > 0), verb == "MAIL" && c.noData:
		c.sayLast(NewReply(421, "4.5.0 Message sent although DATA was refused"))
	case verb == "DATA":
		c.noData = true
	}
	if c.refusals >= c.cfg.MaxRefusals && !c.last {
		c.sayLast(NewReply(421, "4.7.0 Too many refused commands"))
	}
	if c.last {
		c.ended = true
	}
	c.cmd = Command{}
}

// ownWords puts some of go-smtp's replies into the gate's: EHLO offers what
// the gate does and not CHUNKING; the code of a command out of sequence is 503
// (RFC 5321, section 4.2.4); the acknowledgement of MAIL does not show the
// stand-in address.
func (c *Conn) ownWords(r Reply) Reply {
	switch verb := c.cmd.Verb; {
	case verb == "EHLO" && r.Code == 250:
		lines := []string{c.cfg.Hostname, "PIPELINING", "8BITMIME", "ENHANCEDSTATUSCODES"}
		if c.cfg.MaxMessageBytes > 0 {
			return NewReply(250, append(lines, fmt.Sprintf("SIZE %d", c.cfg.MaxMessageBytes))...)
		}
		return NewReply(250, append(lines, "SIZE")...)
	case verb == "HELO" && r.Code == 250:
		return NewReply(250, c.cfg.Hostname)
	case verb == "MAIL" && r.Code == 250:
		return NewReply(250, "2.1.0 Ok")
	case r.Code == 502 && (verb == "MAIL" || verb == "RCPT" || verb == "DATA"):
		r.Code = 503
	case verb == "" && r.Code == 220:
		return NewReply(220, c.cfg.Hostname+" ESMTP spamgate")
	}
	return r
}

// flush writes what is due to the client.
func (c *Conn) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	if c.deaf {
		return errNotRead
	}
	c.Conn.SetWriteDeadline(time.Now().Add(c.cfg.WriteTimeout))
	if c.killed.Load() {
		c.Conn.SetWriteDeadline(time.Now().Add(lastWriteTimeout))
	}
	_, err := c.Conn.Write(c.out)
	c.out = c.out[:0]
	if err != nil {
		c.deaf = true
		return fmt.Errorf("%w: %w", errNotRead, err)
	}
	return nil
}

// errNotRead is wrapped by the errors about replies that the client does not
// take.
var errNotRead = errors.New("writing a reply")
