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

// xforward makes the commands for a transaction: with the client as the log is to
// have it, or with the message's id alone where XCLIENT has told the rest.
func (t *transaction) xforward() []string {
	offered := t.conn.offers["XFORWARD"]
	if t.hop.config.Identity == IdentityNone || len(offered) == 0 {
		return nil
	}
	client := t.env.Logged
	if client == nil {
		if t.conn.told {
			return xforwardCommands(offered, nil, t.env.ID)
		}
		client = &t.env.Client
	}
	client.findName(t.ctx, offered)
	return xforwardCommands(offered, client, t.env.ID)
}

// xforwardCommands makes the commands that tell the next hop who its client's
// client is, with the attributes that it offers; nil tells nothing of it. They
// change what it logs, and hold for the next transaction alone. What does not fit
// in one command goes in another.
//
// IDENT, which is younger than the README, is our own id for the message:
// Postfix logs it as orig_queue_id.
func xforwardCommands(offered []string, client *Client, id string) []string {
	var commands []string
	command := "XFORWARD"
	for _, a := range xforwardAttributes(client, id) {
		if !offersAttribute(offered, a.name) {
			continue
		}
		text := " " + a.name + "=" + xforwardValue(a.value)
		if len(command)+len(text) > xforwardMaxCommand {
			commands = append(commands, command)
			command = "XFORWARD"
		}
		command += text
	}
	if command == "XFORWARD" {
		return commands
	}
	return append(commands, command)
}

// offersAttribute reports whether an attribute is among those of the EHLO line.
func offersAttribute(offered []string, name string) bool {
	return slices.ContainsFunc(offered, func(o string) bool { return strings.EqualFold(o, name) })
}

type xforwardAttribute struct{ name, value string }

func xforwardAttributes(client *Client, id string) []xforwardAttribute {
	if client == nil {
		return []xforwardAttribute{{"IDENT", id}}
	}
	addr, port := addrAttributes(client.Addr)
	return []xforwardAttribute{
		{"NAME", client.Name},
		{"ADDR", addr},
		{"PORT", port},
		{"PROTO", client.Proto},
		{"HELO", client.Helo},
		{"IDENT", id},
		{"SOURCE", "REMOTE"},
	}
}

// xforwardValue encodes a value. Bytes that the README forbids become '?', as
// Postfix makes them itself; a value that is empty or too long is unknown.
func xforwardValue(v string) string {
	if v == "" || len(v) > xforwardMaxValue {
		return xforwardUnknown
	}
	text := xtext(strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || strings.ContainsRune(`<>()\";@`, r) {
			return '?'
		}
		return r
	}, v))
	if len("XFORWARD SOURCE=")+len(text) > xforwardMaxCommand {
		return xforwardUnknown
	}
	return text
}

// xtext encodes bytes as RFC 3461, section 4, has it.
func xtext(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c == '+' || c == '=' || c <= ' ' || c > '~' {
			fmt.Fprintf(&b, "+%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}
