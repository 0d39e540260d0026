package nexthop

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"spamgate/smtpfilter/wire"
)

// open connects and asks for MAIL and the first recipient. The reply is the
// next hop's to MAIL where it refused that, else to RCPT.
//
// A kept connection may have been closed at the other end just now. Where it
// turns out so before MAIL was answered, nothing has happened yet, and the same
// is asked once more on a new connection.
func (t *transaction) open(rcpt string) (wire.Reply, error) {
	for fresh := false; ; fresh = true {
		c, err := t.hop.take(t.ctx, fresh)
		if err != nil {
			return wire.Reply{}, err
		}
		t.attach(c)
		mail, err := pathCommand("MAIL FROM:<", t.env.From, offered(t.env.Params, c.offers))
		if err != nil {
			return wire.Reply{}, err
		}
		a, err := t.firstFlight(mail, rcpt)
		if c.reused && t.ctx.Err() == nil && a.stale(err) {
			t.hop.log.Debug("kept connection to the next hop had ended",
				"next_hop", t.hop.String(), "id", t.env.ID, "error", err, "reply", a.mail.String())
			t.guard()
			c.Close()
			t.conn = nil
			continue
		}
		if err != nil {
			return wire.Reply{}, err
		}
		return t.opened(a), nil
	}
}

// opened takes the answers to the first flight.
func (t *transaction) opened(a answers) wire.Reply {
	// A server that accepts RCPT after it refused MAIL has a transaction open
	// all the same.
	if a.mail.Positive() || a.rcpt.Positive() {
		t.stage = stageOpen
	}
	if a.rcpt.Code == codeClosing {
		t.closeConn()
	}
	if a.mail.Positive() {
		return a.rcpt
	}
	t.refused = a.mail
	return a.mail
}

// answers are the replies to the first flight; zero where none was read.
type answers struct{ mail, rcpt wire.Reply }

// stale reports whether a connection turned out to be closed: cut before MAIL
// was answered, or answered with 421.
func (a answers) stale(err error) bool {
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
	if client := &t.env.Client; client.LookupName != nil && client.Name == "" && offersAttribute(c.offers["XFORWARD"], "NAME") {
		client.Name = client.LookupName(t.ctx)
		client.LookupName = nil
	}
	commands := append(xforwardCommands(c.offers["XFORWARD"], t.env), mail, rcpt)
	mailAt := len(commands) - 2
	pipelining := c.offers.has("PIPELINING")
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
		if reply, err = c.readReply(timeout); err != nil {
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
			t.hop.log.Warn("next hop refused XFORWARD",
				"next_hop", t.hop.String(), "id", t.env.ID, "command", command, "reply", reply.String())
		}
		if reply.Code == codeClosing || !pipelining && !a.mail.IsZero() && !a.mail.Positive() {
			break
		}
	}
	return a, c.check(reply, 0)
}

// offered drops the parameters of MAIL that the next hop would refuse though it
// can do without them: BODY where it does not offer 8BITMIME, since the body is
// sent as it is in any case, and SIZE where it does not offer SIZE.
func offered(params []string, offers extensions) []string {
	return slices.DeleteFunc(slices.Clone(params), func(p string) bool {
		keyword, _, _ := strings.Cut(p, "=")
		switch strings.ToUpper(keyword) {
		case "BODY":
			return !offers.has("8BITMIME")
		case "SIZE":
			return !offers.has("SIZE")
		}
		return false
	})
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
