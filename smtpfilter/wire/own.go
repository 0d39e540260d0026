package wire

// This file is about the commands that the gate carries out itself, and about
// the order of commands where go-smtp does not know of what has happened.

// carryOut does what a command asks where go-smtp is not to see it, and answers
// it. It reports whether it has. Line is the command as it came.
func (c *Conn) carryOut(cmd Command, line []byte) bool {
	c.dropForwarded(cmd)
	if reply := c.outOfTurn(cmd); !reply.IsZero() {
		c.tellRefused(line, reply)
		c.cmd, c.override = cmd, reply
		c.finishReply(reply)
		return true
	}
	switch cmd.Verb {
	case "HELP":
		c.out = c.help().Append(c.out)
		return true
	case "STARTTLS", "AUTH", "XCLIENT", "XFORWARD":
		if c.noData {
			c.sayUnasked()
			return true
		}
	case "EHLO", "HELO":
		return c.talksAhead(cmd.Verb, 503)
	case "DATA":
		return c.talksAhead(cmd.Verb, 554)
	}
	switch cmd.Verb {
	case "STARTTLS":
		c.startTLS(cmd)
	case "AUTH":
		c.auth(cmd)
	case "XCLIENT":
		c.xclient(cmd)
	case "XFORWARD":
		c.xforward(cmd)
	default:
		return false
	}
	return true
}

// outOfTurn is the reply to a command that must not come yet: before TLS where
// it is required (RFC 3207, section 4), or before the client has introduced
// itself, again where TLS or XCLIENT have made it a stranger.
func (c *Conn) outOfTurn(cmd Command) Reply {
	if c.cfg.TLSMode == TLSRequired && c.tls == nil {
		switch cmd.Verb {
		case "EHLO", "HELO", "NOOP", "QUIT", "RSET", "STARTTLS", "HELP", "BDAT":
		default:
			return NewReply(530, "5.7.0 Must issue a STARTTLS command first")
		}
	}
	if c.helo.Verb == "" {
		switch cmd.Verb {
		case "MAIL", "RCPT", "DATA":
			return NewReply(503, "5.5.1 Send EHLO first")
		}
	}
	return Reply{}
}

// idles counts a command that brings no message nearer. It reports whether there
// were so many that the session has ended: who sends nothing else holds a
// connection, and its place among those of the limits, for good, and the log grows.
func (c *Conn) idles(cmd Command) bool {
	switch cmd.Verb {
	case "EHLO", "HELO", "RSET", "NOOP", "VRFY", "HELP":
	case "BDAT":
		if cmd.size > 0 || cmd.last {
			return false
		}
	default:
		return false
	}
	if c.idle++; c.idle <= c.cfg.MaxRefusals {
		return false
	}
	c.sayLast(NewReply(421, "4.7.0 Too many commands without a message"))
	return true
}

// refuseOwn refuses a command of the gate's own. What it had as arguments is
// told to nobody.
func (c *Conn) refuseOwn(cmd Command, r Reply) { c.refuse([]byte(cmd.Verb), r) }

// talksAhead looks for bytes behind a command whose reply a client must wait
// for (RFC 2920, section 3.1). Behind DATA they are a message that was sent
// blindly. It reports whether that ends the session.
func (c *Conn) talksAhead(verb string, code int) bool {
	if len(c.in.bytes()) == 0 {
		return false
	}
	if !c.noticed {
		c.noticed = true
		c.notice("pipelines behind " + verb)
	}
	if c.cfg.RejectPregreet {
		c.sayLast(NewReply(code, "5.5.0 Nothing may follow "+verb+" before its reply"))
	}
	return c.last
}

// notice tells Config.Noticed.
func (c *Conn) notice(what string) {
	if c.cfg.Noticed != nil {
		c.cfg.Noticed(c, what)
	}
}

// help lists the commands that there are (RFC 5321, section 4.1.1.8).
func (c *Conn) help() Reply {
	text := "2.0.0 EHLO HELO MAIL RCPT DATA BDAT RSET NOOP VRFY HELP QUIT"
	if c.offersTLS() {
		text += " STARTTLS"
	}
	if c.offers.mechanisms != "" && !c.authed {
		text += " AUTH"
	}
	if c.trusted() {
		text += " XCLIENT XFORWARD"
	}
	return NewReply(214, text)
}
