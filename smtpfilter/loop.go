package smtpfilter

import (
	"log/slog"
	"strings"

	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// path returns the ids of the gates that mail passes from here on, this one first.
func (l *Listener) path() []string {
	return append([]string{l.server.cfg.ID}, nexthop.Path(l.settings.Load().NextHop)...)
}

// isLoop reports whether a client says EHLO with the gate's own name. That is the gate
// itself, or a client that lies. It does not count if another server may rightly have the
// name: on the gate's machine and in its private network, a trusted proxy, people who log
// in, and clients that are exempt from the lists.
func (s *session) isLoop() bool {
	hostname := s.server.cfg.Hostname
	client := s.conn.Client()
	addr := client.Addr.Addr()
	switch {
	case !strings.EqualFold(client.Helo, hostname), !strings.Contains(hostname, "."), strings.HasPrefix(hostname, "localhost."):
		return false
	case !addr.IsValid(), addr.IsLoopback(), addr.IsPrivate(), addr.IsLinkLocalUnicast(), addr == client.Local.Addr(),
		s.peer.listener.settings.Load().Policy.ExemptClient(addr):
		return false
	}
	return !s.conn.Authenticated() && client.Login == "" && !s.conn.Trusted()
}

// refuseLoop returns the reply to MAIL in a loop (RFC 3463: X.4.6, routing loop detected).
func (s *session) refuseLoop() wire.Reply {
	reply := wire.NewReply(554, "5.4.6 Mail loop: you call yourself "+s.server.cfg.Hostname+", which is this gate's name")
	s.peer.listener.logConn(s.conn, slog.LevelWarn, "mail loop",
		slog.String("reply", reply.String()),
		slog.String("hint", "if this client is a server of yours, give the gate a hostname of its own, or exempt the client from the lists (exempt_clients)"))
	return reply
}
