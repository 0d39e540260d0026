package nexthop

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"

	"spamgate/smtpfilter/wire"
)

// attribute is an attribute of XCLIENT or XFORWARD.
type attribute struct{ name, value string }

// The limits and the unknown value of Postfix's XFORWARD_README.
const (
	maxAttributeValue   = 255
	maxAttributeCommand = 512 - len("\r\n")
	unavailable         = "[UNAVAILABLE]"
)

// appendCommands appends commands with the attributes that are offered, as many in
// each command as fit. It leaves out empty values.
func appendCommands(commands []string, verb string, offered []string, attributes []attribute) []string {
	line := make([]byte, 0, maxAttributeCommand)
	for _, a := range attributes {
		if a.value == "" || !offersAttribute(offered, a.name) {
			continue
		}
		if len(line)+len(" =")+len(a.name)+len(a.value) > maxAttributeCommand {
			commands = append(commands, string(line))
			line = line[:0]
		}
		if len(line) == 0 {
			line = append(line, verb...)
		}
		line = append(line, ' ')
		line = append(line, a.name...)
		line = append(line, '=')
		line = append(line, a.value...)
	}
	if len(line) > 0 {
		commands = append(commands, string(line))
	}
	return commands
}

// offersAttribute reports whether an attribute is among those of the EHLO line.
func offersAttribute(offered []string, name string) bool {
	return slices.ContainsFunc(offered, func(o string) bool { return strings.EqualFold(o, name) })
}

// sourceRemote says that the mail comes from another machine. Without it Postfix
// may rewrite the header as in mail of its own machine.
var sourceRemote = attribute{"SOURCE", "REMOTE"}

// xforward returns the XFORWARD commands for a transaction, with the attributes that
// the next hop offers. They change what it logs, for the next transaction only.
// Whatever Identity is, they say that the mail comes from another machine. Besides,
// they name the client for the log, or after XCLIENT only the message's id.
//
// A server that refuses an attribute ignores others in the same command, so those
// that may be refused have commands of their own: Postfix refuses an IPv6 address if
// inet_protocols is ipv4, and SOURCE must not be lost with it.
func (t *transaction) xforward() []string {
	offered := t.conn.offers["XFORWARD"]
	if len(offered) == 0 {
		return nil
	}
	commands := appendCommands(make([]string, 0, 5), "XFORWARD", offered, []attribute{sourceRemote})
	id := attribute{"IDENT", xforwardValue(t.env.ID)} // Postfix logs it as orig_queue_id
	switch client := t.env.Logged; {
	case t.hop.config.Identity == IdentityNone:
	case client == nil && t.conn.xclientSent:
		commands = appendCommands(commands, "XFORWARD", offered, []attribute{id})
	default:
		if client == nil {
			client = &t.env.Client
		}
		client.findName(t.ctx, offered)
		commands = appendClient(commands, offered, client, id)
	}
	return commands
}

// appendClient appends the commands that name a client and a message.
func appendClient(commands, offered []string, client *Client, id attribute) []string {
	commands = appendCommands(commands, "XFORWARD", offered, []attribute{{"NAME", xforwardValue(client.Name)},
		{"PROTO", xforwardValue(client.Proto)}, {"HELO", xforwardValue(client.Helo)}, id})
	addr, port := addrAttributes(client.Addr)
	return appendCommands(commands, "XFORWARD", offered, []attribute{{"ADDR", xforwardValue(addr)}, {"PORT", xforwardValue(port)}})
}

// xforwardValue encodes a value. Bytes that the README forbids become '?', as in
// Postfix. A value that is empty or too long becomes unknown.
func xforwardValue(v string) string {
	if v == "" || len(v) > maxAttributeValue {
		return unavailable
	}
	text := xtext(strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || strings.ContainsRune(`<>()\";@`, r) {
			return '?'
		}
		return r
	}, v))
	if len("XFORWARD SOURCE=")+len(text) > maxAttributeCommand {
		return unavailable
	}
	return text
}

// xtext encodes bytes as xtext (RFC 3461, section 4). Most values need no encoding.
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

// Servers complete and rewrite header addresses of mail from their own machine.
// Postfix (local_header_rewrite_clients) takes the gate for a local program, also
// after XCLIENT: it rewrites "spam%b.example" and "b.example!spam" to
// spam@b.example, and completes a bare word. XFORWARD SOURCE=REMOTE prevents that.

// noSourceRemote is logged if SOURCE=REMOTE is not offered, or refused.
const noSourceRemote = "the next hop cannot be told that mail comes from other machines (XFORWARD SOURCE=REMOTE): " +
	"it may turn an incomplete address in a header, such as spam%listed.example, into a listed sender; " +
	"Postfix: set smtpd_authorized_xforward_hosts to the gate's address and local_header_rewrite_clients to nothing for the service in master.cf; " +
	`others: docs/next-hop.md, "Servers that rewrite headers"`

// firstComplaint reports whether an attribute is logged as refused or not offered
// for the first time. A server may refuse it with each message.
func (s *server) firstComplaint(attribute string) bool {
	_, logged := s.complaints.LoadOrStore(attribute, nil)
	return !logged
}

// checkSource logs, once, that a next hop does not offer SOURCE. It warns if that is
// a Postfix on the gate's machine, which rewrites headers by default. LMTP servers
// don't, and a PROXY header shows where a client is.
func (s *server) checkSource(c *conn) {
	if s.config.LMTP || s.config.Proxy > 0 || offersAttribute(c.offers["XFORWARD"], sourceRemote.name) {
		return
	}
	if !s.firstComplaint(sourceRemote.name) {
		return
	}
	level := slog.LevelInfo
	if sameMachine(c.socket) && strings.Contains(c.greeting.String(), "Postfix") {
		level = slog.LevelWarn
	}
	s.log.Log(context.Background(), level, noSourceRemote, "next_hop", s.String(), "offers", keywords(c.offers))
}

// sameMachine reports whether both ends of a connection are on this machine.
func sameMachine(c net.Conn) bool {
	remote, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return c.RemoteAddr().Network() == "unix"
	}
	local, ok := c.LocalAddr().(*net.TCPAddr)
	return remote.IP.IsLoopback() || ok && remote.IP.Equal(local.IP)
}

// xforwardRefused logs the refusal of an XFORWARD command, as a warning the first
// time. Mail passes nevertheless.
func (s *server) xforwardRefused(id, command string, reply wire.Reply) {
	attribute, _, _ := strings.Cut(strings.TrimPrefix(command, "XFORWARD "), "=")
	level := slog.LevelDebug
	if s.firstComplaint(attribute) {
		level = slog.LevelWarn
	}
	text := "next hop refused XFORWARD: its log lacks these attributes of the client; further refusals of them are not logged"
	if attribute == sourceRemote.name {
		text = noSourceRemote
	}
	s.log.Log(context.Background(), level, text,
		"next_hop", s.String(), "id", id, "command", command, "reply", reply.String())
}
