package nexthop

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"spamgate/smtpfilter/wire"
)

// open connects and asks for MAIL and the first recipient, with rcpt as the
// command for it. The reply is the next hop's to MAIL where it refused that, else
// to RCPT.
//
// A kept connection may have been closed at the other end just now, or be of no
// use for this message. Where it turns out so before MAIL was answered, nothing
// has happened yet, and the same is asked once more on a new connection.
func (t *transaction) open(rcpt, to string, params []string) (reply wire.Reply, err error) {
	defer func() {
		if err != nil {
			t.hop.known.health.noteFailure(t.ctx, err)
		}
	}()
	for fresh := false; ; fresh = true {
		c, err := t.take(fresh)
		if err != nil {
			return wire.Reply{}, err
		}
		t.attach(c)
		a, err := t.startMail(rcpt, to, params)
		if c.reused && t.ctx.Err() == nil && (a.closedByServer(err) || needsNewConn(err)) {
			t.hop.log.Debug("kept connection to the next hop is of no use any more",
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

// take gives the transaction a connection.
func (t *transaction) take(fresh bool) (*conn, error) {
	if t.login != nil {
		return t.login.take(t.ctx)
	}
	client := &t.env.Client
	if t.hop.usesXCLIENT() {
		// The name is part of what makes a kept connection this client's.
		client.findName(t.ctx, t.hop.Extensions()["XCLIENT"])
	}
	return t.hop.take(t.ctx, client, fresh)
}

// startMail tells the next hop whose connection it is, where that is due, and
// sends the first flight. A login's was told when the client logged in. A client
// that is refused by then is told so as if it were for MAIL.
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
	return t.firstFlight(mail, rcpt)
}

// unfit reports an error that a new connection may not give: the next hop refuses
// another client's name on this one, or did not offer what it does by now.
func needsNewConn(err error) bool {
	var refused *ReplyError
	return errors.As(err, &refused) || errors.Is(err, errXCLIENT) || lacksFeature(err)
}

// lacks reports an error about something that the next hop does not offer.
func lacksFeature(err error) bool {
	return errors.Is(err, ErrNotOffered) || errors.Is(err, ErrNoXCLIENT) || errors.Is(err, ErrRequireTLS)
}

// opened takes the answers to the first flight.
func (t *transaction) takeAnswers(a answers) wire.Reply {
	// A server that accepts RCPT after it refused MAIL has a transaction open
	// all the same.
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
		return a.rcpt
	}
	t.refused = a.mail
	return a.mail
}

// answers are the replies to the first flight; zero where none was read.
type answers struct {
	mail, rcpt wire.Reply

	// forwarded is set once XFORWARD was sent. Its attributes hold until the end of a
	// transaction or RSET. A MAIL that is refused ends none: Postfix would log them with
	// the next message, too, where that does not replace them.
	forwarded bool
}

// stale reports whether a connection turned out to be closed: cut before MAIL
// was answered, or answered with 421.
func (a answers) closedByServer(err error) bool {
	if !a.mail.IsZero() {
		return a.mail.Code == codeClosing
	}
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// firstFlight sends XFORWARD, MAIL and RCPT and reads the replies: in one flight
// where the next hop offers PIPELINING (RFC 2920), else one by one until MAIL is
// refused. A 421 ends it, and counts as the reply to MAIL where that had none.
func (t *transaction) firstFlight(mail, rcpt string) (a answers, err error) {
	c := t.conn
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
			return a, fmt.Errorf("%w: unexpected %s", wire.ErrBadReply, reply)
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
	return a, c.check(reply, 0)
}

// pathCommand makes a MAIL or RCPT command. Path and parameters were validated
// by the caller; that no part of them ends the line is checked here once more,
// where it is written.
func pathCommand(prefix, path string, params []string) (string, error) {
	command := strings.Join(append([]string{prefix + path + ">"}, params...), " ")
	if strings.ContainsAny(command, "\r\n\x00") {
		return "", fmt.Errorf("control bytes in %q", command)
	}
	return command, nil
}
