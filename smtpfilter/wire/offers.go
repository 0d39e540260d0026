package wire

import (
	"slices"
	"strconv"
	"strings"
)

// extension is a set of SMTP extensions.
type extension uint16

// The extensions that decide which form of a command is valid.
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

// offers are what the reply to the last EHLO or HELO offered. They are zero before
// the first one.
type offers struct {
	set        extension
	limit      int64  // the largest message in bytes, 0 for no limit
	mechanisms string // of AUTH, separated by spaces; "" if AUTH is not offered
}

// PathKeyword is the EHLO keyword of Config.Path, which is the gate's own (RFC 5321,
// section 2.2.2: keywords with X).
const PathKeyword = "XSPAMGATE"

// basicExtensions are the next hop's if Config.Extensions is nil.
var basicExtensions = Extensions{"8BITMIME": nil, "ENHANCEDSTATUSCODES": nil, "SIZE": nil}

// MaxMessageBytes returns the largest message that this client may send, in bytes as
// RFC 1870 counts them: the smaller of Config.MaxMessageBytes and the next hop's limit
// at the last EHLO or HELO. 0 means no limit.
func (c *Conn) MaxMessageBytes() int64 {
	if c.offers.set == 0 {
		return c.cfg.MaxMessageBytes
	}
	return c.offers.limit
}

// terms returns what the client's next command may hold.
func (c *Conn) terms() terms {
	t := terms{offered: c.offers.set, utf8: c.inMail && c.utf8}
	if t.offered == 0 {
		t.offered = extSize | ext8BitMIME // a command that comes too early may be valid
	}
	return t
}

// welcome returns the reply to the HELO or EHLO that go-smtp has accepted, and sets
// the offers.
func (c *Conn) welcome() Reply {
	c.helo = c.cmd
	next := basicExtensions
	if c.cfg.Extensions != nil {
		next = c.cfg.Extensions(c)
	}
	lines := append(make([]string, 0, 16), c.cfg.Hostname, "PIPELINING", "CHUNKING")
	lines = c.mirrorOffers(next, lines)
	lines = c.gateOffers(next, lines)
	c.offers.limit = smaller(c.cfg.MaxMessageBytes, next.Size())
	c.offers.set |= extSize
	size := "SIZE"
	if c.offers.limit > 0 {
		size += " " + strconv.FormatInt(c.offers.limit, 10)
	}
	lines = append(lines, size)
	if c.cmd.Verb == "HELO" {
		lines = lines[:1]
	}
	return NewReply(250, lines...)
}

// mirrorOffers begins the offers with what the next hop offers and the gate passes on.
func (c *Conn) mirrorOffers(next Extensions, lines []string) []string {
	c.offers = offers{}
	add := func(offered bool, e extension, keyword, parameter string) {
		if !offered {
			return
		}
		c.offers.set |= e
		if parameter != "" {
			keyword += " " + parameter
		}
		lines = append(lines, keyword)
	}
	add(next.Has("8BITMIME"), ext8BitMIME, "8BITMIME", "")
	add(next.Has("BINARYMIME") && next.Has("CHUNKING"), extBinaryMIME, "BINARYMIME", "")
	add(next.Has("SMTPUTF8"), extSMTPUTF8, "SMTPUTF8", "")
	add(next.Has("DSN"), extDSN, "DSN", "")
	add(next.Has("ENHANCEDSTATUSCODES"), 0, "ENHANCEDSTATUSCODES", "")
	add(next.Has("DELIVERBY"), extDeliverBy, "DELIVERBY", word(next["DELIVERBY"]))
	add(next.Has("MT-PRIORITY"), extPriority, "MT-PRIORITY", word(next["MT-PRIORITY"]))
	if n := smaller(int64(c.cfg.MaxRecipients), next.Limit("RCPTMAX")); n > 0 {
		add(next.Has("LIMITS"), 0, "LIMITS", "RCPTMAX="+strconv.FormatInt(n, 10))
	}
	add(next.Has("REQUIRETLS") && c.tls != nil, extRequireTLS, "REQUIRETLS", "")
	return lines
}

// gateOffers adds what depends on this client and the gate.
func (c *Conn) gateOffers(next Extensions, lines []string) []string {
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
	if c.Trusted() {
		lines = append(lines, "XCLIENT "+xclientAttributes, "XFORWARD "+xforwardAttributes)
	}
	return lines
}

// mechanisms returns the next hop's SASL mechanisms that can be passed through. Those
// ending in -PLUS bind to the TLS channel (RFC 5801, section 5) and EXTERNAL to its
// certificate, which are not the client's there.
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

// smaller returns the smaller of two limits, of which 0 is no limit.
func smaller(a, b int64) int64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// word returns the only parameter of a keyword, or "" if it is not one plain word.
func word(parameters []string) string {
	if len(parameters) != 1 || !validKeyword(parameters[0]) {
		return ""
	}
	return parameters[0]
}

// Extensions are the keywords of a reply to EHLO, in upper case, with their
// parameters as received.
type Extensions map[string][]string

// ParseExtensions parses the lines of a reply to EHLO after the first, which is the
// server's name (RFC 5321, section 4.1.1.1).
func ParseExtensions(r Reply) Extensions {
	e := make(Extensions)
	for _, line := range r.Lines[1:] {
		if words := strings.Fields(line); len(words) > 0 {
			e[strings.ToUpper(words[0])] = words[1:]
		}
	}
	return e
}

// Has reports whether a keyword, in upper case, is offered.
func (e Extensions) Has(keyword string) bool {
	_, ok := e[keyword]
	return ok
}

// Size returns the message size that SIZE announces, in bytes (RFC 1870), or 0 for
// no limit.
func (e Extensions) Size() int64 {
	if len(e["SIZE"]) != 1 {
		return 0
	}
	return parseLimit(e["SIZE"][0])
}

// Limit returns a value of LIMITS (RFC 9422, section 4), or 0 for none.
func (e Extensions) Limit(name string) int64 {
	for _, l := range e["LIMITS"] {
		if key, value, _ := strings.Cut(l, "="); strings.EqualFold(key, name) {
			return parseLimit(value)
		}
	}
	return 0
}

// parseLimit parses a number, and returns 0 for anything else.
func parseLimit(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}
