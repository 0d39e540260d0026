package wire

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"spamgate/internal/text"
)

// MaxCommandLine is the longest command line, in bytes, CRLF included. RFC 5321,
// section 4.5.3.1.4 wants 512 and more for extensions; go-smtp and Postfix accept
// 2048.
const MaxCommandLine = 2048

// Command is a command line that has been validated.
type Command struct {
	// Verb is the command in upper case: "MAIL".
	Verb string

	// Arg is the client's name in HELO and EHLO, "" otherwise.
	Arg string

	// Path is the reverse-path of MAIL or the forward-path of RCPT.
	Path Path

	// Params holds the ESMTP parameters of MAIL and RCPT as received:
	// "BODY=8BITMIME".
	Params []string

	// Size is the value of MAIL's SIZE parameter in bytes (RFC 1870), or 0.
	Size int64

	// UTF8 says that MAIL has the parameter SMTPUTF8 (RFC 6531).
	UTF8 bool

	// RequireTLS says that MAIL has the parameter REQUIRETLS (RFC 8689).
	RequireTLS bool

	rest string // the arguments of a command that the gate carries out
	size int64  // of BDAT's chunk in bytes
	last bool   // BDAT's chunk ends the message
}

// terms says which commands are valid at this point of a session.
type terms struct {
	offered extension // what was offered
	utf8    bool      // the transaction has SMTPUTF8
}

// parseCommand parses and validates a command line without its CRLF. A reply that is
// not zero refuses the line. All other commands the gate carries out, or go-smtp
// knows.
func parseCommand(line string, t terms) (Command, Reply) {
	ascii := true
	for i := range len(line) {
		if c := line[i]; c < ' ' || c == 0x7f {
			return Command{}, NewReply(500, "5.5.2 Control characters are not allowed in commands")
		} else if c >= utf8.RuneSelf {
			ascii = false
		}
	}
	verb, arg, _ := strings.Cut(line, " ")
	cmd := Command{Verb: strings.ToUpper(verb)}
	arg = strings.Trim(arg, " ")

	switch cmd.Verb {
	case "MAIL":
		return cmd.withPath(arg, "FROM:", t)
	case "RCPT":
		return cmd.withPath(arg, "TO:", t)
	case "HELO", "EHLO":
		return cmd.withName(arg)
	}
	if !ascii {
		return Command{}, NewReply(500, "5.5.2 8-bit characters are not allowed in this command")
	}
	switch cmd.Verb {
	case "DATA", "RSET", "QUIT":
		if arg != "" {
			return Command{}, NewReply(501, "5.5.4 "+cmd.Verb+" takes no argument")
		}
		return cmd, Reply{}
	case "NOOP", "VRFY":
		return cmd, Reply{}
	case "HELP", "STARTTLS", "AUTH", "XCLIENT", "XFORWARD":
		cmd.rest = arg
		return cmd, Reply{}
	case "BDAT":
		return cmd.withChunk(arg)
	case "EXPN", "ETRN", "TURN", "ATRN", "SEND", "SOML", "SAML", "LHLO", "BURL":
		return Command{}, NewReply(502, "5.5.1 "+cmd.Verb+" is not offered")
	}
	return Command{}, NewReply(500, "5.5.2 Command not recognized")
}

// canonical returns the line that go-smtp gets for the command, CRLF included. It has
// short stand-in addresses, since go-smtp reads them byte by byte; the session gets
// the real ones from Command.
func (cmd Command) canonical() string {
	switch cmd.Verb {
	case "MAIL":
		return "MAIL FROM:<>\r\n"
	case "RCPT":
		return "RCPT TO:<r@invalid>\r\n"
	case "HELO", "EHLO":
		return cmd.Verb + " " + cmd.Arg + "\r\n"
	case "BDAT":
		return "DATA\r\n"
	}
	return cmd.Verb + "\r\n"
}

// withName sets the argument of HELO and EHLO: one word of printable ASCII. The name is
// only logged and passed on, never trusted, so any form is valid.
func (cmd Command) withName(arg string) (Command, Reply) {
	arg, _, _ = strings.Cut(arg, " ")
	if arg == "" || len(arg) > 255 || !isGraphic(arg) {
		return Command{}, NewReply(501, "5.5.4 "+cmd.Verb+" needs a host name")
	}
	cmd.Arg = arg
	return cmd, Reply{}
}

// withPath sets the argument of MAIL and RCPT: the prefix, a path and parameters.
func (cmd Command) withPath(arg, prefix string, t terms) (Command, Reply) {
	if len(arg) < len(prefix) || !strings.EqualFold(arg[:len(prefix)], prefix) {
		return Command{}, NewReply(501, fmt.Sprintf("5.5.4 Syntax: %s %s<address>", cmd.Verb, prefix))
	}
	path, rest, err := parsePath(arg[len(prefix):])
	if err == nil && rest != "" && rest[0] != ' ' {
		err = errPathSyntax
	}
	if err == nil && path.Domain() == "" {
		err = cmd.checkBarePath(path)
	}
	if err != nil {
		return Command{}, cmd.badPath(err)
	}
	cmd.Path = path

	for _, param := range strings.Fields(rest) {
		for _, earlier := range cmd.Params {
			if strings.EqualFold(keyword(earlier), keyword(param)) {
				return Command{}, NewReply(501, "5.5.4 "+strings.ToUpper(keyword(param))+" given twice")
			}
		}
		if reply := cmd.addParam(param, t); !reply.IsZero() {
			return Command{}, reply
		}
	}
	if !text.IsASCII(path.addr) && !cmd.UTF8 && (cmd.Verb == "MAIL" || !t.utf8) {
		return Command{}, cmd.badPath(errPath8bit)
	}
	return cmd, Reply{}
}

// checkBarePath accepts <> in MAIL and <postmaster> in RCPT (RFC 5321, section 4.5.1).
// To any other address without a domain the next hop would add one that was never
// judged.
func (cmd Command) checkBarePath(p Path) error {
	switch {
	case cmd.Verb == "MAIL" && p.IsNull():
		return nil
	case cmd.Verb == "RCPT" && strings.EqualFold(p.String(), "postmaster"):
		return nil
	}
	return errPathNoDomain
}

// badPath returns the reply to an invalid path (RFC 3463: X.1.7 bad sender's address,
// X.1.3 bad destination's; X.6.7 from RFC 6531).
func (cmd Command) badPath(err error) Reply {
	switch {
	case err == errPath8bit, err == errPathUTF8, err == errPathInvisible, err == errPathLookAlike:
		return NewReply(553, "5.6.7 "+err.Error())
	case cmd.Verb == "MAIL":
		return NewReply(501, "5.1.7 Sender address: "+err.Error())
	default:
		return NewReply(501, "5.1.3 Recipient address: "+err.Error())
	}
}

// isGraphic reports whether s holds graphic ASCII only, without space.
func isGraphic(s string) bool { return all(s, func(c byte) bool { return c > ' ' && c <= '~' }) }

// all reports whether a condition holds for all bytes of s.
func all(s string, holds func(c byte) bool) bool {
	for i := range len(s) {
		if !holds(s[i]) {
			return false
		}
	}
	return true
}
