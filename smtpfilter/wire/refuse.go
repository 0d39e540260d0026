package wire

import "bytes"

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
