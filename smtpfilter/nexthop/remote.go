package nexthop

import (
	"context"
	"log/slog"
	"net"
	"strings"

	"spamgate/smtpfilter/wire"
)

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
func (s *SMTP) firstComplaint(attribute string) bool {
	_, logged := s.complaints.LoadOrStore(attribute, nil)
	return !logged
}

// checkSource logs, once, that a next hop does not offer SOURCE. It warns if that is
// a Postfix on the gate's machine, which rewrites headers by default. LMTP servers
// don't, and a PROXY header shows where a client is.
func (s *SMTP) checkSource(c *conn) {
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
func (s *SMTP) xforwardRefused(id, command string, reply wire.Reply) {
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
