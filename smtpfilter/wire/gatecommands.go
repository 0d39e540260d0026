package wire

// This file has the commands that go-smtp does not see, and the rules for the order
// of commands that depend on TLS, XCLIENT and pipelining.

// execute carries out a command that go-smtp does not see, or must not see now, and
// answers it. It reports whether it has. Line is the command as received.
func (c *Conn) execute(cmd Command, line []byte) bool {
	c.dropForwarded(cmd, c.inMail)
	if reply := c.checkSequence(cmd); !reply.IsZero() {
		c.reportRefused(line, reply)
		c.cmd, c.override = cmd, reply
		c.finishReply(reply)
		return true
	}
	switch cmd.Verb {
	case "HELP":
		c.out = c.help().Append(c.out)
		return true
	case "EHLO", "HELO":
		return c.pipelinesAfter(cmd.Verb, 503)
	case "DATA":
		return c.pipelinesAfter(cmd.Verb, 554)
	case "STARTTLS", "AUTH", "XCLIENT", "XFORWARD":
	default:
		return false
	}
	switch {
	case c.dataRefused:
		c.endUnasked()
	case cmd.Verb == "STARTTLS":
		c.startTLS(cmd)
	case cmd.Verb == "AUTH":
		(&exchange{c: c}).run(cmd)
	case cmd.Verb == "XCLIENT":
		proxied{c, cmd}.doXCLIENT()
	default:
		proxied{c, cmd}.doXFORWARD()
	}
	return true
}

// checkSequence returns the reply to a command that must not come yet: before TLS if
// it is required (RFC 3207, section 4), before HELO or EHLO, which TLS and XCLIENT
// make necessary again, or before a login if it is required (RFC 4954, section 6).
func (c *Conn) checkSequence(cmd Command) Reply {
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
	if c.cfg.AuthRequired && !c.authed && c.Client().Login == "" {
		switch cmd.Verb {
		case "MAIL", "RCPT", "DATA", "VRFY":
			return NewReply(530, "5.7.0 Authentication required")
		}
	}
	return Reply{}
}

// countIdle counts a command that does not lead to a message, and ends the session
// after too many: a client that sends nothing else would occupy a connection for good,
// and fill the log. It reports whether the session has ended.
func (c *dialogue) countIdle(cmd Command) bool {
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

// refuseVerb refuses a command of the gate without its arguments, which no hook may
// receive.
func (c *Conn) refuseVerb(cmd Command, r Reply) { c.refuse([]byte(cmd.Verb), r) }

// pipelinesAfter checks for bytes after a command whose reply a client must wait for
// (RFC 2920, section 3.1). After DATA they are a message that was sent blindly. It
// reports whether the session has ended.
func (c *Conn) pipelinesAfter(verb string, code int) bool {
	if len(c.in.bytes()) == 0 {
		return false
	}
	if !c.pipelined {
		c.pipelined = true
		c.notice("pipelines after " + verb)
	}
	if c.cfg.RejectPregreet {
		c.sayLast(NewReply(code, "5.5.0 Nothing may follow "+verb+" before its reply"))
	}
	return c.last
}

// notice calls Config.Noticed.
func (c *Conn) notice(what string) {
	if c.cfg.Noticed != nil {
		c.cfg.Noticed(c, what)
	}
}

// help returns the list of commands (RFC 5321, section 4.1.1.8).
func (c *Conn) help() Reply {
	text := "2.0.0 EHLO HELO MAIL RCPT DATA BDAT RSET NOOP VRFY HELP QUIT"
	if c.offersTLS() {
		text += " STARTTLS"
	}
	if c.offers.mechanisms != "" && !c.authed {
		text += " AUTH"
	}
	if c.Trusted() {
		text += " XCLIENT XFORWARD"
	}
	return NewReply(214, text)
}
