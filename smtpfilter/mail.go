package smtpfilter

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-smtp"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// Mail begins a transaction. The next hop receives MAIL with the first recipient.
func (s *session) Mail(string, *smtp.MailOptions) error {
	if s.conn.Messages() == 0 {
		growStack(0)
	}
	cmd := s.conn.Command()
	if s.t != nil {
		return s.answer(wire.NewReply(503, "5.5.1 A mail transaction is open already; end it with DATA or RSET"))
	}
	if limit := s.conn.MaxMessageBytes(); limit > 0 && cmd.Size > limit {
		reply := tooLarge(limit)
		s.peer.listener.logBadCommand(s.conn, fmt.Sprintf("MAIL FROM:<%s> SIZE=%d", cmd.Path, cmd.Size), reply)
		return s.answer(reply)
	}
	if s.isLoop() {
		return s.answer(s.refuseLoop())
	}
	settings := s.peer.listener.settings.Load()
	if result := settings.Limiter.MessageOf(s.addr(), s.peer.loginID(s.conn)); !result.Allowed() {
		return s.answer(s.peer.listener.limited(s.conn, result))
	}
	t := s.newTransaction(settings)
	if t.Misread() != nil {
		t.next.Abort()
		reply := wire.NewReply(553, "5.1.7 Sender address not understood")
		s.logRefusal(t, &t.Plain().Envelope, nil, reply, nil)
		return s.answer(reply)
	}
	s.t = t
	return nil
}

// newTransaction returns the transaction that the current MAIL begins, whose sender is judged.
func (s *session) newTransaction(settings *Settings) *transaction {
	cmd, client := s.conn.Command(), s.peer.client(s.conn)
	t := &transaction{
		id:       newID(),
		began:    time.Now(),
		settings: settings,
		client:   client,
		from:     cmd.Path,
		params:   cmd.Params,
		utf8:     cmd.UTF8,
		Judgement: Judgement{Policy: &settings.Policy, Message: verdict.Message{
			Door:        "proxy",
			Listener:    s.peer.listener.name,
			Client:      client.Addr,
			Helo:        client.Helo,
			Login:       client.Login,
			ReversePath: cmd.Path.String(),

			ClientNamed:   s.conn.Named(),
			ClientIsProxy: !s.conn.Named() && (s.conn.Trusted() || s.conn.IsProxy()),
		}},
	}
	authenticated := s.conn.Authenticated() || client.Login != ""
	if !authenticated {
		t.params = withoutSubmitter(t.params)
	}
	t.next = s.begin(t)
	t.Begin(s.server.ctx, settings.Checker, authenticated)
	return t
}

// begin begins a transaction with the next hop, which does not connect yet. The next hop
// is that of the settings at MAIL, even if they change.
func (s *session) begin(t *transaction) nexthop.Transaction {
	e := nexthop.Envelope{
		Client: t.client,
		From:   t.from.String(),
		Params: t.params,
		ID:     t.id,

		MayLogin: t.settings.PassAuth,
	}
	if forwarded := s.conn.Forwarded(); forwarded != s.conn.Client() {
		logged := nextHopClient(forwarded)
		e.Logged = &logged
	}
	if s.peer.login != nil {
		return s.peer.login.Begin(e)
	}
	return t.settings.NextHop.Begin(e)
}

// tooLarge returns the reply to a message over the limit (RFC 1870, section 6).
func tooLarge(limit int64) wire.Reply {
	return wire.NewReply(552, fmt.Sprintf("5.3.4 Message larger than %d bytes", limit))
}

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

// withoutSubmitter returns the parameters of MAIL with any AUTH replaced by AUTH=<>: a
// client that is not authenticated cannot vouch for the submitter of a message (RFC 4954,
// section 5). The parameter of an authenticated client is passed on unchanged. The next hop
// knows the client from its own connection and decides, or the trusted proxy that sent
// XCLIENT LOGIN vouches for it.
func withoutSubmitter(params []string) []string {
	isAuth := func(p string) bool {
		keyword, _, _ := strings.Cut(p, "=")
		return strings.EqualFold(keyword, "AUTH")
	}
	i := slices.IndexFunc(params, isAuth)
	if i < 0 {
		return params
	}
	params = slices.Clone(params)
	params[i] = "AUTH=<>"
	return params
}
