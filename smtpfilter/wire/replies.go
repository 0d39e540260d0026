package wire

import (
	"errors"
	"fmt"
	"time"
)

// This file is the way back to the client: what go-smtp writes, exchanged for
// what the session says, and sent when the client has to be waited for.

// Write takes go-smtp's replies, a line at a time.
func (c *Conn) Write(p []byte) (n int, err error) {
	defer c.contain(&err)
	if c.exchanged(p) {
		if !c.ended {
			c.finishReply(c.override)
		}
		return len(p), nil
	}
	last, err := c.reply.AppendLine(p)
	if err != nil {
		return 0, err
	}
	if last {
		reply := c.reply
		c.reply = Reply{}
		if !c.opened {
			c.opened = true
			reply = c.open() // go-smtp's first reply is its greeting
		}
		if !c.ended {
			c.finishReply(reply)
		}
	}
	return len(p), nil
}

// exchanged reports whether a line is a whole reply that the session's takes the
// place of, so that it need not be read.
func (c *Conn) exchanged(line []byte) bool {
	return !c.override.IsZero() && c.reply.IsZero() && len(line) > 4 && line[3] == ' ' && line[0] != '3'
}

// finishReply queues the reply to the current command.
func (c *Conn) finishReply(r Reply) {
	if c.body != nil && c.body.chunk.answered {
		c.endAnswered()
		return
	}
	verb := c.cmd.Verb
	intermediate := r.Code == 354
	if !intermediate && !c.override.IsZero() {
		r, c.override = c.override, Reply{}
	} else {
		r = c.ownWords(r)
	}
	switch {
	case verb == "BDAT" && intermediate: // the client does not wait for a 354
	case verb == "BDAT" && c.body == nil:
		c.refuseChunk(r)
		return
	default:
		c.out = r.Append(c.out)
	}
	if r.Permanent() || r.Temporary() {
		c.countRefusal(r)
	}
	if c.body != nil && r.Positive() {
		c.idle = 0
	}

	switch {
	case intermediate:
		c.messages++
		c.noData = false
		c.body = newBody(c)
		return
	case verb == "MAIL" && r.Positive():
		c.inMail, c.noData, c.chunkLost = true, false, false
		c.utf8, c.mailed = c.cmd.UTF8, true
		c.binary = c.cmd.binary()
	case verb == "DATA" && c.body != nil, verb == "RSET":
		c.endTransaction()
	case verb == "BDAT":
		lost := !c.body.chunk.last
		c.endTransaction()
		c.chunkLost = lost
	case (verb == "HELO" || verb == "EHLO") && r.Positive():
		c.endTransaction()
	case verb == "MAIL" && c.noData:
		c.sayUnasked()
	case verb == "DATA":
		c.dataRefused()
	}
	c.limitRefusals()
	if c.last {
		c.ended = true
	}
	c.cmd = Command{}
}

// endTransaction forgets what belonged to the mail transaction.
func (c *Conn) endTransaction() {
	c.inMail, c.noData, c.binary, c.chunkLost = false, false, false, false
	c.surplus = 0
	c.body = nil
}

// dataRefused is what a refusal of DATA brings with it: what follows may be the
// message all the same.
func (c *Conn) dataRefused() {
	if c.noData || len(c.in.bytes()) > 0 {
		c.sayUnasked()
	}
	c.noData = true
}

// sayUnasked ends the session of a client that sends the message which was
// refused.
func (c *Conn) sayUnasked() {
	c.sayLast(NewReply(421, "4.5.0 Message sent although DATA was refused"))
}

// maxSurplus is how many recipients too many, in one transaction, do not count as
// refused. It is what Postfix allows (smtpd_recipient_overshoot_limit).
const maxSurplus = 1000

// countRefusal counts a refused command. A recipient of those that are too many is
// none: the client has done nothing wrong, is to send to the others now and to this
// one later (RFC 5321, section 4.5.3.1.10), and could not if the session ended. The
// recipients of a message that an LMTP next hop took for some only come in groups.
func (c *Conn) countRefusal(r Reply) {
	if c.cmd.Verb == "RCPT" && r.Code == 452 && c.surplus < maxSurplus {
		c.surplus++
		return
	}
	c.refusals++
}

// limitRefusals ends the session where too many commands were refused.
func (c *Conn) limitRefusals() {
	if c.refusals >= c.cfg.MaxRefusals && !c.last {
		c.sayLast(NewReply(421, "4.7.0 Too many refused commands"))
	}
}

// The gate's words for commands that have succeeded.
var (
	mailTaken   = NewReply(250, "2.1.0 Ok")
	nothingDone = NewReply(250, "2.0.0 Ok")
	notVerified = NewReply(252, "2.5.2 Cannot verify a user, but will take mail for one")
)

// ownWords puts some of go-smtp's replies into the gate's: EHLO offers what
// the gate does; the code of a command out of sequence is 503 (RFC 5321, section
// 4.2.4); the acknowledgement of MAIL does not show the stand-in address.
func (c *Conn) ownWords(r Reply) Reply {
	switch verb := c.cmd.Verb; {
	case (verb == "EHLO" || verb == "HELO") && r.Code == 250:
		return c.welcome()
	case verb == "MAIL" && r.Code == 250:
		return mailTaken
	case verb == "NOOP" && r.Code == 250:
		return nothingDone
	case verb == "VRFY" && r.Code == 252:
		return notVerified
	case r.Code == 502 && (verb == "MAIL" || verb == "RCPT" || verb == "DATA" || verb == "BDAT"):
		r.Code = 503
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
	_, err := c.stream.Write(c.out)
	if c.out = c.out[:0]; cap(c.out) > keptReply {
		c.out = nil
	}
	if err != nil {
		c.deaf = true
		return fmt.Errorf("%w: %w", errNotRead, err)
	}
	return nil
}

// keptReply bounds the room for replies, in bytes, that a connection keeps while
// it waits for its client.
const keptReply = 512

// errNotRead is wrapped by the errors about replies that the client does not
// take.
var errNotRead = errors.New("writing a reply")
