package wire

import (
	"bytes"
	"errors"
	"slices"
	"strings"
)

// MaxAuthLine is the longest line of an AUTH exchange, in bytes, CRLF included
// (RFC 4954, section 4).
const MaxAuthLine = 12288

// Authenticated reports whether the client's AUTH has succeeded.
func (c *Conn) Authenticated() bool { return c.authed }

// beginsAuth reports whether data begins with an AUTH command: if AUTH is offered the line may be
// as long as MaxAuthLine.
func beginsAuth(data []byte) bool {
	return len(data) >= 5 && bytes.EqualFold(data[:5], []byte("AUTH "))
}

// exchange is the dialogue between an AUTH command and its reply.
type exchange struct {
	c     *Conn
	err   error // why it has ended
	reply Reply // the reply to the client then; zero if endWith sends it
	over  bool  // … which is the last
}

// run carries out AUTH (RFC 4954). Only Config.Auth receives what the client sends
// with it: no error and no other hook repeats it.
func (x *exchange) run(cmd Command) {
	c := x.c
	mechanism, initial, hasInitial := strings.Cut(cmd.rest, " ")
	mechanism = strings.ToUpper(mechanism)
	if reply := x.check(mechanism, initial, hasInitial); !reply.IsZero() {
		c.refuseVerb(cmd, reply)
		return
	}
	if len(c.in.bytes()) > 0 {
		// These bytes may be commands, or an answer to a challenge that was not
		// sent yet.
		c.notice("pipelines after AUTH")
		c.sayLast(authPipelined)
		return
	}
	args := mechanism
	if hasInitial {
		args += " " + initial
	}
	reply := c.forClient(c.cfg.Auth(c, args, x.ask))
	if x.err != nil {
		reply = x.reply
	}
	switch {
	case x.err != nil && reply.IsZero():
		c.endWith(x.err)
	case reply.Code == 235:
		c.authed, c.offers.mechanisms = true, ""
		c.out = reply.Append(c.out)
	case x.over, reply.Code == 421:
		c.sayLast(reply)
		c.fault = reply.CodesOnly()
	case !reply.Temporary() && !reply.Permanent():
		c.refuseVerb(cmd, NewReply(454, "4.7.0 Temporary authentication failure"))
	default:
		c.refuseVerb(cmd, reply)
	}
}

// check returns the reply to an AUTH command that cannot be carried out.
func (x *exchange) check(mechanism, initial string, hasInitial bool) Reply {
	c := x.c
	switch {
	case c.cfg.Auth == nil:
		return NewReply(502, "5.5.1 AUTH is not offered")
	case c.tls == nil:
		return NewReply(538, "5.7.11 Encryption required for requested authentication mechanism")
	case c.helo.Verb == "":
		return NewReply(503, "5.5.1 Send EHLO first")
	case c.authed:
		return NewReply(503, "5.5.1 Authenticated already")
	case c.inMail:
		return NewReply(503, "5.5.1 AUTH is not allowed inside a mail transaction")
	case !isMechanism(mechanism) || hasInitial && initial != "=" && (initial == "" || !isBase64(initial)):
		return NewReply(501, "5.5.4 Syntax: AUTH mechanism [initial-response]")
	case !slices.Contains(strings.Fields(c.offers.mechanisms), mechanism):
		return NewReply(504, "5.5.4 Authentication mechanism is not offered")
	}
	return Reply{}
}

// authPipelined is the reply to bytes that come within an AUTH exchange too early.
var authPipelined = NewReply(554, "5.5.0 Nothing may be sent in an AUTH exchange before it is asked for")

// The reasons why an AUTH exchange ends before its mechanism does.
var (
	errAskTwice   = errors.New("wire: the AUTH exchange is over")
	errNo334      = errors.New("wire: a challenge must have the code 334")
	errChallenge  = errors.New("wire: a long challenge must be one line of base64")
	errBadBase64  = errors.New("the client's answer is not base64")
	errAuthAhead  = errors.New("the client sends answers before the challenge")
	errAuthFramed = errors.New("the client's answer is not a valid line")
)

// ask sends a challenge, which must have the code 334, and returns the client's
// answer: base64, which may be empty, or "*" if it gives up (RFC 4954, section 4). A
// challenge is never shortened: one that is longer than an ordinary reply must be one
// line of base64, of at most MaxAuthLine bytes. After an error the exchange is over,
// and the result of Config.Auth does not count.
func (x *exchange) ask(challenge Reply) (string, error) {
	c := x.c
	switch {
	case x.err != nil:
		return "", errAskTwice
	case challenge.Code != 334:
		return x.fail(errNo334, NewReply(454, "4.7.0 Temporary authentication failure"), false)
	case !challenge.fits() && !isLongChallenge(challenge):
		return x.fail(errChallenge, NewReply(454, "4.7.0 Temporary authentication failure"), false)
	case len(c.in.bytes()) > 0:
		c.notice("pipelines after AUTH")
		return x.fail(errAuthAhead, authPipelined, true)
	}
	c.out = challenge.Append(c.out)
	line, err := c.readLineOf(MaxAuthLine, true)
	if err == errLineTooLong {
		return x.fail(err, NewReply(500, "5.5.6 Authentication exchange line is too long"), true)
	}
	if err != nil {
		return x.fail(err, Reply{}, true)
	}
	if reply := checkFraming(line); !reply.IsZero() {
		return x.fail(errAuthFramed, reply, true)
	}
	answer := string(line)
	if answer != "*" && !isBase64(answer) {
		return x.fail(errBadBase64, NewReply(501, "5.5.2 Invalid base64"), false)
	}
	return answer, nil
}

func (x *exchange) fail(err error, r Reply, over bool) (string, error) {
	x.err, x.reply, x.over = err, r, over
	return "", err
}

// isLongChallenge reports whether a reply is one line of base64 that fits in
// MaxAuthLine.
func isLongChallenge(r Reply) bool {
	return len(r.Lines) == 1 && len("334 ")+len(r.Lines[0])+len("\r\n") <= MaxAuthLine && isBase64(r.Lines[0])
}

// isMechanism reports whether s, in upper case, is the name of a SASL mechanism
// (RFC 4422, section 3.1).
func isMechanism(s string) bool {
	return s != "" && len(s) <= 20 && all(s, func(c byte) bool {
		return 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
	})
}

// isBase64 reports whether s is base64 with its padding (RFC 4648, section 4).
func isBase64(s string) bool {
	data := strings.TrimSuffix(strings.TrimSuffix(s, "="), "=")
	return len(s)%4 == 0 && all(data, func(c byte) bool { return isAlnum(c) || c == '+' || c == '/' })
}
