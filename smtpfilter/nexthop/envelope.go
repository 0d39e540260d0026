package nexthop

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"spamgate/smtpfilter/wire"
)

// open connects and sends MAIL and rcpt, the command for the first recipient. It
// returns the next hop's reply to MAIL if that is a refusal, else to RCPT.
//
// The server may have closed a kept connection just now, or refuse this message on
// it. If that shows before MAIL is answered, open tries once more on a new
// connection, and so it does if the server asks for STARTTLS.
func (t *transaction) open(rcpt, to string, params []string) (reply wire.Reply, err error) {
	defer func() {
		if err != nil {
			t.hop.known.health.noteFailure(t.ctx, err)
		}
	}()
	upgraded := false
	for fresh := false; ; fresh = true {
		c, err := t.take(fresh)
		if err != nil {
			return wire.Reply{}, err
		}
		t.attach(c)
		a, err := t.startMail(rcpt, to, params)
		err = inStep(StepMail, err)
		upgrade := errors.Is(err, errUpgraded) && !upgraded && t.login == nil
		if (upgrade || c.reused && (a.closedByServer(err) || needsNewConn(err))) && t.ctx.Err() == nil {
			upgraded = upgraded || upgrade
			t.hop.log.Debug("kept connection to the next hop cannot be used any more",
				"next_hop", t.hop.String(), "id", t.env.ID, "error", err, "reply", a.mail.String())
			t.guard()
			c.Close()
			t.conn = nil
			continue
		}
		if err != nil {
			return wire.Reply{}, err
		}
		return t.takeAnswers(a), nil
	}
}

// take returns a connection for the transaction.
func (t *transaction) take(fresh bool) (*conn, error) {
	if t.login != nil {
		return t.login.take(t.ctx)
	}
	client := &t.env.Client
	if t.hop.usesXCLIENT() {
		// The name is part of the identity of a kept connection.
		client.findName(t.ctx, t.hop.Extensions()["XCLIENT"])
	}
	return t.hop.take(t.ctx, client, fresh)
}

// startMail gives the connection the client's identity and sends the first flight.
// The connection of a login has its identity already. A refusal of the client counts
// as the reply to MAIL.
func (t *transaction) startMail(rcpt, to string, params []string) (a answers, err error) {
	if t.login == nil {
		a.mail, err = t.hop.identify(t.ctx, t.conn, &t.env.Client)
		if err != nil || !a.mail.IsZero() {
			return a, err
		}
	}
	kept, err := t.hop.mailParams(t.conn, t.env.From, t.env.Params)
	if err != nil {
		return a, err
	}
	if err := checkRcpt(to, params, t.conn.offers); err != nil {
		return a, err
	}
	mail, err := pathCommand("MAIL FROM:<", t.env.From, kept)
	if err != nil {
		return a, err
	}
	if a, err = t.firstFlight(mail, rcpt); err != nil {
		return a, err
	}
	if reply := a.reply(); !reply.Positive() {
		err = t.checkSession(reply)
	}
	return a, err
}

// needsNewConn reports whether an error may not occur on a new connection: the next
// hop refuses another client's identity on this one, or offers more by now.
func needsNewConn(err error) bool {
	var refused *ReplyError
	return errors.As(err, &refused) || isAny(err, []error{errXCLIENT, ErrSession}) || lacksFeature(err)
}

// lacksFeature reports whether an error says that the next hop does not offer
// something.
func lacksFeature(err error) bool {
	return isAny(err, []error{ErrNotOffered, ErrNoXCLIENT, ErrRequireTLS})
}

// takeAnswers evaluates the answers to the first flight.
func (t *transaction) takeAnswers(a answers) wire.Reply {
	// A server that refuses MAIL and accepts RCPT has a transaction open, too.
	open := a.mail.Positive() || a.rcpt.Positive()
	if open {
		t.conn.mails++
	}
	if open || a.forwarded {
		t.stage = stageOpen
	}
	if a.rcpt.Code == codeClosing {
		t.closeConn()
	}
	if a.mail.Positive() {
		t.hop.known.health.markUp()
	} else {
		t.refused = a.mail
	}
	return a.reply()
}

// answers are the replies to the first flight; zero if none was read.
type answers struct {
	mail, rcpt wire.Reply

	// forwarded is set once XFORWARD was sent. Its attributes hold until the end
	// of a transaction or RSET. If MAIL is refused there is no transaction, and
	// Postfix would log them with the next message.
	forwarded bool
}

// reply returns the reply to MAIL if that is a refusal, else to RCPT.
func (a answers) reply() wire.Reply {
	if a.mail.Positive() {
		return a.rcpt
	}
	return a.mail
}

// closedByServer reports whether the server closed the connection before it answered
// MAIL, or answered MAIL with 421.
func (a answers) closedByServer(err error) bool {
	if !a.mail.IsZero() {
		return a.mail.Code == codeClosing
	}
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// firstFlight sends XFORWARD, MAIL and RCPT and reads the replies: in one flight if
// the next hop offers PIPELINING (RFC 2920), else one by one until MAIL is refused.
// A 421 ends it, and counts as the reply to MAIL if that has none.
func (t *transaction) firstFlight(mail, rcpt string) (a answers, err error) {
	c, began := t.conn, time.Now()
	commands := append(t.xforward(), mail, rcpt)
	mailAt := len(commands) - 2
	a.forwarded = mailAt > 0
	pipelining := c.offers.Has("PIPELINING")
	if pipelining {
		if err := c.send(strings.Join(commands, "\r\n") + "\r\n"); err != nil {
			return a, err
		}
	}
	var reply wire.Reply
	for i, command := range commands {
		if !pipelining {
			if err := c.send(command + "\r\n"); err != nil {
				return a, err
			}
		}
		timeout := c.timeouts.Mail
		if i > mailAt {
			timeout = c.timeouts.Rcpt
		}
		if reply, err = c.readSlowReply(timeout); err != nil {
			return a, err
		}
		if !reply.Positive() && !refusal(reply) {
			return a, unexpected(reply)
		}
		switch {
		case i > mailAt:
			a.rcpt = reply
		case i == mailAt || reply.Code == codeClosing:
			a.mail = reply
		case !reply.Positive():
			t.hop.xforwardRefused(t.env.ID, command, reply)
		}
		if reply.Code == codeClosing || !pipelining && !a.mail.IsZero() && !a.mail.Positive() {
			break
		}
	}
	if err := c.check(reply, 0); err != nil {
		return a, err
	}
	t.hop.config.Meter.Took(t.hop.name, StepMail, time.Since(began))
	return a, nil
}

// pathCommand returns a MAIL or RCPT command. The caller has validated path and
// parameters; pathCommand checks once more that they do not end the line.
func pathCommand(prefix, path string, params []string) (string, error) {
	command := strings.Join(append([]string{prefix + path + ">"}, params...), " ")
	if strings.ContainsAny(command, "\r\n\x00") {
		return "", fmt.Errorf("control bytes in %q", command)
	}
	return command, nil
}
