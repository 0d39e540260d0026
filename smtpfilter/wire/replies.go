package wire

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// This file has the way back to the client: go-smtp's replies are replaced by the
// session's, and sent before the next wait for the client.

// Write accepts go-smtp's replies, a line at a time.
func (c *Conn) Write(p []byte) (n int, err error) {
	defer c.contain(&err)
	if c.replaced(p) {
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
			reply = opening{c}.open() // the first reply of go-smtp is its greeting
		}
		if !c.ended {
			c.finishReply(reply)
		}
	}
	return len(p), nil
}

// replaced reports whether a line is a whole reply that the session's replaces, so that
// it need not be parsed.
func (c *dialogue) replaced(line []byte) bool {
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
		r = c.rewrite(r)
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
		c.dataRefused = false
		c.body = newBody(c)
		return
	case verb == "MAIL" && r.Positive():
		c.inMail, c.dataRefused, c.chunkRefused = true, false, false
		c.utf8, c.mailSeen = c.cmd.UTF8, true
		c.binary = c.cmd.binary()
	case verb == "DATA" && c.body != nil, verb == "RSET":
		c.endTransaction()
	case verb == "BDAT":
		lost := !c.body.chunk.last
		c.endTransaction()
		c.chunkRefused = lost
	case (verb == "HELO" || verb == "EHLO") && r.Positive():
		c.endTransaction()
	case verb == "MAIL" && c.dataRefused:
		c.endUnasked()
	case verb == "DATA":
		c.refusedDATA()
	}
	c.limitRefusals()
	if c.last {
		c.ended = true
	}
	c.cmd = Command{}
}

// endTransaction resets the state of the mail transaction.
func (c *dialogue) endTransaction() { c.transaction = transaction{} }

// refusedDATA handles a refusal of DATA: the message may follow nevertheless.
func (c *dialogue) refusedDATA() {
	if c.dataRefused || len(c.in.bytes()) > 0 {
		c.endUnasked()
	}
	c.dataRefused = true
}

// endUnasked ends the session of a client that sends a message after a refused DATA.
func (c *dialogue) endUnasked() {
	c.sayLast(NewReply(421, "4.5.0 Message sent although DATA was refused"))
}

// maxSurplus is how many recipients above the limit, in one transaction, do not count
// as refused, as in Postfix (smtpd_recipient_overshoot_limit).
const maxSurplus = 1000

// countRefusal counts a refused command. A recipient above the limit does not count:
// the client has to send to the others now and to this one later (RFC 5321, section
// 4.5.3.1.10), which it could not if the session ended. The same holds for recipients
// of a message that an LMTP next hop has accepted for some only.
func (c *dialogue) countRefusal(r Reply) {
	if c.cmd.Verb == "RCPT" && r.Code == 452 && c.surplus < maxSurplus {
		c.surplus++
		return
	}
	c.refusals++
}

// limitRefusals ends the session after too many refused commands.
func (c *dialogue) limitRefusals() {
	if c.refusals >= c.cfg.MaxRefusals && !c.last {
		c.sayLast(NewReply(421, "4.7.0 Too many refused commands"))
	}
}

// The gate's replies to commands that have succeeded.
var (
	mailAccepted = NewReply(250, "2.1.0 Ok")
	noopDone     = NewReply(250, "2.0.0 Ok")
	notVerified  = NewReply(252, "2.5.2 Cannot verify a user, but will take mail for one")
)

// rewrite replaces some of go-smtp's replies: EHLO has the gate's offers; a command out
// of sequence has the code 503 (RFC 5321, section 4.2.4); the reply to MAIL does not
// show the stand-in address.
func (c *Conn) rewrite(r Reply) Reply {
	switch verb := c.cmd.Verb; {
	case (verb == "EHLO" || verb == "HELO") && r.Code == 250:
		return c.welcome()
	case verb == "MAIL" && r.Code == 250:
		return mailAccepted
	case verb == "NOOP" && r.Code == 250:
		return noopDone
	case verb == "VRFY" && r.Code == 252:
		return notVerified
	case r.Code == 502 && (verb == "MAIL" || verb == "RCPT" || verb == "DATA" || verb == "BDAT"):
		r.Code = 503
	}
	return r
}

// flush sends the queued replies to the client.
func (c *pipe) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	if c.unwritable {
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
		c.unwritable = true
		return fmt.Errorf("%w: %w", errNotRead, err)
	}
	return nil
}

// keptReply limits the size of the reply buffer, in bytes, that a connection keeps
// while it waits for its client.
const keptReply = 512

// errNotRead is wrapped by the errors of writing replies.
var errNotRead = errors.New("writing a reply")

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
func (c *dialogue) sayLast(r Reply) {
	c.out = r.Append(c.out)
	c.fault = r
	c.last = true
}
