package wire

import (
	"slices"
	"strconv"
	"strings"
)

// extension is a set of SMTP's extensions.
type extension uint16

// The extensions on which the form of a command depends.
const (
	extSize       extension = 1 << iota // SIZE (RFC 1870)
	ext8BitMIME                         // 8BITMIME (RFC 6152)
	extBinaryMIME                       // BINARYMIME (RFC 3030)
	extSMTPUTF8                         // SMTPUTF8 (RFC 6531)
	extDSN                              // DSN (RFC 3461)
	extDeliverBy                        // DELIVERBY (RFC 2852)
	extPriority                         // MT-PRIORITY (RFC 6710)
	extRequireTLS                       // REQUIRETLS (RFC 8689)
	extAuth                             // AUTH (RFC 4954), offered or done
)

// offers is what an EHLO or HELO was answered with, until the next. The zero
// offers are those of a client that has not introduced itself.
type offers struct {
	set        extension
	limit      int64  // the largest message in bytes, 0 for no limit
	mechanisms string // of AUTH, parted by spaces, "" where it is not offered
}

// PathKeyword is the keyword of Config.Path. It is the gate's own, as RFC 5321 (section
// 2.2.2) has it for those that begin with X.
const PathKeyword = "XSPAMGATE"

// basicExtensions are taken for the next hop's where Config.Extensions is nil.
var basicExtensions = Extensions{"8BITMIME": nil, "ENHANCEDSTATUSCODES": nil, "SIZE": nil}

// MaxMessageBytes is the largest message that this client may send, in bytes as
// RFC 1870 counts them: the smaller one of Config.MaxMessageBytes and what the
// next hop had announced by the time of the last EHLO or HELO. 0 means no limit.
func (c *Conn) MaxMessageBytes() int64 {
	if c.offers.set == 0 {
		return c.cfg.MaxMessageBytes
	}
	return c.offers.limit
}

// terms is what the client's next command may hold.
func (c *Conn) terms() terms {
	t := terms{offered: c.offers.set, utf8: c.inMail && c.utf8}
	if t.offered == 0 {
		t.offered = extSize | ext8BitMIME // what comes too early is well-formed
	}
	return t
}

// welcome is the reply to the HELO or EHLO that go-smtp has accepted. What is
// offered holds from now on.
func (c *Conn) welcome() Reply {
	c.helo = c.cmd
	next := basicExtensions
	if c.cfg.Extensions != nil {
		next = c.cfg.Extensions(c)
	}
	lines := append(make([]string, 0, 16), c.cfg.Hostname, "PIPELINING", "CHUNKING")
	lines = c.mirror(next, lines)
	lines = c.ownOffers(next, lines)
	c.offers.limit = smaller(c.cfg.MaxMessageBytes, next.Size())
	c.offers.set |= extSize
	if c.offers.limit > 0 {
		lines = append(lines, "SIZE "+strconv.FormatInt(c.offers.limit, 10))
	} else {
		lines = append(lines, "SIZE")
	}
	if c.cmd.Verb == "HELO" {
		lines = lines[:1]
	}
	return NewReply(250, lines...)
}

// mirror takes over what the next hop offers and the gate passes on. It begins
// the offers anew.
func (c *Conn) mirror(next Extensions, lines []string) []string {
	c.offers = offers{}
	add := func(e extension, keyword, parameter string) {
		c.offers.set |= e
		if parameter != "" {
			keyword += " " + parameter
		}
		lines = append(lines, keyword)
	}
	if next.Has("8BITMIME") {
		add(ext8BitMIME, "8BITMIME", "")
	}
	if next.Has("BINARYMIME") && next.Has("CHUNKING") {
		add(extBinaryMIME, "BINARYMIME", "")
	}
	if next.Has("SMTPUTF8") {
		add(extSMTPUTF8, "SMTPUTF8", "")
	}
	if next.Has("DSN") {
		add(extDSN, "DSN", "")
	}
	if next.Has("ENHANCEDSTATUSCODES") {
		add(0, "ENHANCEDSTATUSCODES", "")
	}
	if next.Has("DELIVERBY") {
		add(extDeliverBy, "DELIVERBY", word(next["DELIVERBY"]))
	}
	if next.Has("MT-PRIORITY") {
		add(extPriority, "MT-PRIORITY", word(next["MT-PRIORITY"]))
	}
	if n := smaller(int64(c.cfg.MaxRecipients), next.Limit("RCPTMAX")); n > 0 && next.Has("LIMITS") {
		add(0, "LIMITS", "RCPTMAX="+strconv.FormatInt(n, 10))
	}
	if next.Has("REQUIRETLS") && c.tls != nil {
		add(extRequireTLS, "REQUIRETLS", "")
	}
	return lines
}

// ownOffers adds what depends on this client and the gate.
func (c *Conn) ownOffers(next Extensions, lines []string) []string {
	if c.offersTLS() {
		lines = append(lines, "STARTTLS")
	}
	switch {
	case c.authed:
		c.offers.set |= extAuth
	case c.tls != nil && c.cfg.Auth != nil:
		if c.offers.mechanisms = mechanisms(next["AUTH"]); c.offers.mechanisms != "" {
			c.offers.set |= extAuth
			lines = append(lines, "AUTH "+c.offers.mechanisms)
		}
	}
	if c.cfg.Path != nil {
		lines = append(lines, PathKeyword+" "+strings.Join(c.cfg.Path(), " "))
	}
	if c.trusted() {
		lines = append(lines, "XCLIENT "+xclientAttributes, "XFORWARD "+xforwardAttributes)
	}
	return lines
}

// mechanisms are those of the next hop's SASL mechanisms that can be passed
// through, in its order. Those ending in -PLUS bind to the TLS channel (RFC 5801,
// section 5) and EXTERNAL to its certificate, which are not the client's there.
func mechanisms(names []string) string {
	var passed []string
	for _, name := range names {
		name = strings.ToUpper(name)
		if isMechanism(name) && !strings.HasSuffix(name, "-PLUS") && name != "EXTERNAL" && !slices.Contains(passed, name) {
			passed = append(passed, name)
		}
	}
	line := strings.Join(passed, " ")
	if len(line) > MaxReplyLine-len("250-AUTH \r\n") {
		return ""
	}
	return line
}

// smaller is the smaller one of two limits, of which 0 is none.
func smaller(a, b int64) int64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// word is the only parameter of a keyword, "" where it is no single plain word.
func word(parameters []string) string {
	if len(parameters) != 1 || !validKeyword(parameters[0]) {
		return ""
	}
	return parameters[0]
}
