package nexthop

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"

	"spamgate/smtpfilter/wire"
)

// Servers complete and rewrite addresses in headers of mail that comes from their
// own machine. Postfix (local_header_rewrite_clients) takes the gate for a program
// of its machine, also after XCLIENT, and makes spam@b.example of "spam%b.example"
// and "b.example!spam", and a full address of a bare word. XFORWARD SOURCE=REMOTE
// switches that off.

// cannotTellRemote is logged where SOURCE=REMOTE is not offered or refused.
const cannotTellRemote = "the next hop cannot be told that mail comes from other machines (XFORWARD SOURCE=REMOTE): " +
	"it may turn an incomplete address in a header, such as spam%listed.example, into a listed sender; " +
	"Postfix: set smtpd_authorized_xforward_hosts to the gate's address and local_header_rewrite_clients to nothing for the service in master.cf; " +
	`others: docs/operating.md, "Servers that rewrite headers"`

// complaints are the attributes of XFORWARD that have been logged as refused or not
// offered: the first one of each command. Each is logged once for a target, since a
// server refuses it with each message.
type complaints struct {
	mu   sync.Mutex
	made map[string]bool
}

// first reports whether an attribute has not been complained about before.
func (c *complaints) first(attribute string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made[attribute] {
		return false
	}
	if c.made == nil {
		c.made = make(map[string]bool)
	}
	c.made[attribute] = true
	return true
}

// checkSource logs, once, that a next hop does not offer SOURCE. It warns where that
// is a Postfix on the gate's machine, which rewrites headers by default. LMTP servers
// are at the end of the way, and a PROXY header tells where a client is.
func (s *SMTP) checkSource(c *conn) {
	if s.config.LMTP || s.config.Proxy > 0 || offersAttribute(c.offers["XFORWARD"], sourceRemote.name) {
		return
	}
	if !s.complaints.first(sourceRemote.name) {
		return
	}
	level := slog.LevelInfo
	greeting := strings.Join(c.greeting.Lines, " ")
	if sameMachine(c.socket) && strings.Contains(greeting, "Postfix") {
		level = slog.LevelWarn
	}
	s.log.Log(context.Background(), level, cannotTellRemote, "next_hop", s.String(), "offers", keywords(c.offers))
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

// xforwardRefused logs the first refusal of each command of XFORWARD. Mail passes
// all the same.
func (s *SMTP) xforwardRefused(id, command string, reply wire.Reply) {
	attribute, _, _ := strings.Cut(strings.TrimPrefix(command, "XFORWARD "), "=")
	level := slog.LevelDebug
	if s.complaints.first(attribute) {
		level = slog.LevelWarn
	}
	text := "next hop refused XFORWARD: its log lacks these attributes of the client; further refusals of them are not logged"
	if attribute == sourceRemote.name {
		text = cannotTellRemote
	}
	s.log.Log(context.Background(), level, text,
		"next_hop", s.String(), "id", id, "command", command, "reply", reply.String())
}
