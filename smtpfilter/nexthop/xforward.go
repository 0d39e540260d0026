package nexthop

import (
	"fmt"
	"slices"
	"strings"
)

// The bounds and the placeholder of Postfix's XFORWARD_README, which defines
// the command.
const (
	xforwardMaxValue   = 255
	xforwardMaxCommand = 512 - len("\r\n")
	xforwardUnknown    = "[UNAVAILABLE]"
)

// xforward returns the commands for a transaction. They say that the mail comes
// from another machine, whatever Identity is; they name the client that the log is
// to have, or, where XCLIENT has told the client, the message's id alone.
func (t *transaction) xforward() []string {
	offered := t.conn.offers["XFORWARD"]
	if len(offered) == 0 {
		return nil
	}
	groups := [][]xforwardAttribute{{sourceRemote}}
	switch client := t.env.Logged; {
	case t.hop.config.Identity == IdentityNone:
	case client == nil && t.conn.xclientSent:
		groups = append(groups, []xforwardAttribute{{"IDENT", t.env.ID}})
	default:
		if client == nil {
			client = &t.env.Client
		}
		client.findName(t.ctx, offered)
		groups = append(groups, xforwardAttributes(client, t.env.ID)...)
	}
	return xforwardCommands(offered, groups)
}

// xforwardCommands returns the commands for those attributes that the next hop
// offers. They change what it logs, and hold for the next transaction alone.
//
// Each group has a command of its own, or several if one would be too long. A server
// that refuses an attribute ignores others in the same command: Postfix refuses an
// IPv6 address if inet_protocols is ipv4, and a refused address must not take SOURCE
// with it.
func xforwardCommands(offered []string, groups [][]xforwardAttribute) []string {
	commands := make([]string, 0, len(groups))
	line := make([]byte, 0, xforwardMaxCommand)
	for _, group := range groups {
		line = line[:0]
		for _, a := range group {
			if !offersAttribute(offered, a.name) {
				continue
			}
			value := xforwardValue(a.value)
			if len(line)+len(" =")+len(a.name)+len(value) > xforwardMaxCommand {
				commands = append(commands, string(line))
				line = line[:0]
			}
			if len(line) == 0 {
				line = append(line, "XFORWARD"...)
			}
			line = append(line, ' ')
			line = append(line, a.name...)
			line = append(line, '=')
			line = append(line, value...)
		}
		if len(line) > 0 {
			commands = append(commands, string(line))
		}
	}
	return commands
}

// offersAttribute reports whether an attribute is among those of the EHLO line.
func offersAttribute(offered []string, name string) bool {
	return slices.ContainsFunc(offered, func(o string) bool { return strings.EqualFold(o, name) })
}

type xforwardAttribute struct{ name, value string }

// sourceRemote says that the mail comes from another machine. Without it Postfix
// may rewrite the header as in mail of its own machine.
var sourceRemote = xforwardAttribute{"SOURCE", "REMOTE"}

// xforwardAttributes returns the attributes that name a client and a message, those
// that may be refused apart from the others.
//
// IDENT, which is younger than the README, is our own id for the message:
// Postfix logs it as orig_queue_id.
func xforwardAttributes(client *Client, id string) [][]xforwardAttribute {
	addr, port := addrAttributes(client.Addr)
	return [][]xforwardAttribute{
		{{"NAME", client.Name}, {"PROTO", client.Proto}, {"HELO", client.Helo}, {"IDENT", id}},
		{{"ADDR", addr}, {"PORT", port}},
	}
}

// xforwardValue encodes a value. Bytes that the README forbids become '?', as
// Postfix makes them itself; a value that is empty or too long is unknown.
func xforwardValue(v string) string {
	if v == "" || len(v) > xforwardMaxValue {
		return xforwardUnknown
	}
	text := xtext(strings.Map(func(r rune) rune {
		switch r {
		case '<', '>', '(', ')', '\\', '"', ';', '@':
			return '?'
		}
		if r <= ' ' || r > '~' {
			return '?'
		}
		return r
	}, v))
	if len("XFORWARD SOURCE=")+len(text) > xforwardMaxCommand {
		return xforwardUnknown
	}
	return text
}

// xtext encodes bytes as RFC 3461, section 4, has it. Most values need no encoding.
func xtext(s string) string {
	encoded := func(c byte) bool { return c == '+' || c == '=' || c <= ' ' || c > '~' }
	if !slices.ContainsFunc([]byte(s), encoded) {
		return s
	}
	var b strings.Builder
	for _, c := range []byte(s) {
		if encoded(c) {
			fmt.Fprintf(&b, "+%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}
