package smtpfilter

import (
	"context"
	"crypto/tls"
	"log/slog"
	"strings"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/wire"
)

// Every decision is one line. The text names the kind of decision; the attributes of the
// message come first, always in the same order.

// logOutcome logs a message with the next hop's reply.
func (s *session) logOutcome(t *transaction, size int64, reply wire.Reply) {
	text := "accepted"
	t.outcome = OutcomeAccepted
	if !reply.Positive() {
		text = "refused by the next hop"
		t.outcome = OutcomeNextHop
	}
	f, action, exempt := t.Shown()
	refused := ""
	if f.Verdict.Action > action && action == verdict.Tag {
		refused = s.showAll(t.refusing())
	}
	ahead := ""
	if action == verdict.Accept && len(t.tags) > 0 { // what the tags say is not so after all
		action, ahead = verdict.Tag, strings.Join(t.tags, ", and one: ")
	}
	s.log(slog.LevelInfo, text, t, f, t.recipients(), action.String(), wire.Reply{}, s.nextHopAttr(t, reply),
		slog.String("exempt", exempt), slog.String("refused_for", refused), slog.String("tagged_ahead", ahead), slog.Int64("size", size))
}

// logRefusal logs a sender that was refused, or that could not be looked up. Refused are the
// recipients for whom alone it is, or nil.
func (s *session) logRefusal(t *transaction, f *verdict.Finding, to []wire.Path, reply wire.Reply, refused []wire.Path) {
	t.outcome = OutcomeListed
	action := verdict.Reject
	if reply.Temporary() {
		action = verdict.Defer
	}
	if noAnswer(f) {
		t.outcome = OutcomeFailed
		s.log(slog.LevelError, "lists cannot be asked", t, f, to, action.String(), reply,
			slog.String("error", s.hide(t, f, WhyNoAnswer(f.Err))))
		return
	}
	reply = s.server.decisions().Refusal(t.Policy, f, t.id, reply, texts(refused)...)
	var more []slog.Attr
	if refused != nil {
		more = []slog.Attr{slog.String("refused_for", s.showAll(refused))}
	}
	s.log(slog.LevelInfo, "refused", t, f, to, action.String(), reply, more...)
}

// logDiscarded logs for which recipients a message was accepted and dropped, a line for each
// class of them.
func (s *session) logDiscarded(t *transaction) {
	for _, class := range t.dropped {
		var to []wire.Path
		for _, r := range t.discarded {
			if r.class == class {
				to = append(to, r.path)
			}
		}
		s.log(slog.LevelWarn, "discarded", t, class.Decides(), to, verdict.Discard.String(), wire.Reply{})
	}
}

// observe logs the entries about the reverse-path that only monitor, each once for a message.
func (s *session) observe(t *transaction, class *Class) {
	s.logMonitored(t, t.Monitored(class))
}

// logMonitored logs each entry that only monitors.
func (s *session) logMonitored(t *transaction, findings []verdict.Finding) {
	EachMonitored(findings, func(f verdict.Finding, would []slog.Attr) {
		s.log(slog.LevelInfo, "monitored", t, &f, nil, "monitor", wire.Reply{}, would...)
	})
}

// logWithoutAddress logs a header field that has no address.
func (s *session) logWithoutAddress(t *transaction, field string) {
	s.log(slog.LevelInfo, "header field without an address", t, &verdict.Finding{Identity: field}, nil, verdict.Accept.String(), wire.Reply{})
}

// logUnreadable logs the first address in the header that could not be looked up, and how
// many there are.
func (s *session) logUnreadable(t *transaction, h *HeaderFindings) {
	if h.Unreadables > 0 {
		first := &h.Unreadable
		s.log(slog.LevelInfo, "header address not understood", t, first, nil, verdict.Accept.String(), wire.Reply{},
			slog.Int("addresses", h.Unreadables), slog.String("error", s.hide(t, first, first.Err.Error())))
	}
}

// logNextHopFailure logs a next hop that could not be asked, or did not answer.
func (s *session) logNextHopFailure(t *transaction, to []wire.Path, reply wire.Reply, err error) {
	t.outcome = OutcomeFailed
	s.log(slog.LevelError, "next hop failed", t, &noFinding, to, verdict.Defer.String(), reply, s.errAttr(t, err))
}

// logBytesRefused logs a message that was refused because of its bytes, size or form.
func (s *session) logBytesRefused(t *transaction, size int64, reply wire.Reply, err error) {
	action := verdict.Reject
	if reply.Temporary() {
		action = verdict.Defer
	}
	s.log(slog.LevelInfo, "message refused", t, &noFinding, t.recipients(), action.String(), reply,
		slog.Int64("size", size), s.errAttr(t, err))
}

// logBadCommand logs a MAIL or RCPT that is malformed or asks for what is not offered. If
// the log hides addresses, it shows the verb only: a malformed address cannot be hidden.
func (l *Listener) logBadCommand(c *wire.Conn, line string, reply wire.Reply) {
	const probe = "a@example.com"
	if l.server.cfg.ShowAddress(probe) != probe {
		line, _, _ = strings.Cut(line, " ")
	}
	l.logConn(c, slog.LevelInfo, "command refused",
		slog.String("action", verdict.Reject.String()),
		slog.String("command", line),
		slog.String("reply", reply.String()))
}

// logNoticed logs what a client should not have done.
func (l *Listener) logNoticed(c *wire.Conn, what string) {
	l.logConn(c, slog.LevelInfo, "noticed", slog.String("what", what))
}

// logAcceptFailed logs that clients cannot be accepted now.
func (l *Listener) logAcceptFailed(err error) {
	l.server.cfg.Log.Error("cannot take a client now, trying again", "listener", l.name, "error", err)
}

// logAuth logs an AUTH without what was exchanged. It shows only the codes of the reply,
// since next hops repeat there what they received. Programs that block clients look for
// "authentication failed", so only a failure of the client has this text.
func (l *Listener) logAuth(c *wire.Conn, mechanism string, reply wire.Reply, outcome AuthOutcome, err error) {
	level, text := slog.LevelInfo, "authentication failed"
	switch outcome {
	case AuthAuthenticated:
		text = "authenticated"
	case AuthUnavailable:
		level, text = slog.LevelError, "authentication not possible now"
	}
	attrs := []slog.Attr{slog.String("mechanism", mechanism), slog.String("reply", reply.CodesOnly().String())}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	l.logConn(c, level, text, attrs...)
}

// logConn logs an event of a connection.
func (l *Listener) logConn(c *wire.Conn, level slog.Level, text string, more ...slog.Attr) {
	log := l.server.cfg.Log
	if !log.Enabled(context.Background(), level) {
		return
	}
	client := c.Client()
	attrs := make([]slog.Attr, 0, 8)
	if l.name != "" {
		attrs = append(attrs, slog.String("listener", l.name))
	}
	attrs = append(attrs, slog.String("client", client.Addr.String()), slog.String("helo", client.Helo))
	log.LogAttrs(context.Background(), level, text, append(attrs, more...)...)
}

// logClosed logs the end of a connection: at info if the gate ended it because the client
// broke the rules, else at debug.
func (l *Listener) logClosed(c *wire.Conn) {
	level := slog.LevelDebug
	if f := c.Fault(); f.Permanent() {
		level = slog.LevelInfo
	}
	l.logConn(c, level, "disconnected",
		slog.Int("messages", c.Messages()),
		slog.String("reply", c.Fault().String()),
		slog.String("duration", c.Age().Round(time.Microsecond).String()))
}

// log logs a decision about a message.
func (s *session) log(level slog.Level, text string, t *transaction, f *verdict.Finding, to []wire.Path, action string, reply wire.Reply, more ...slog.Attr) {
	log := s.server.decisions()
	kept := log.Wanted(text, f, t.recorded)
	if !kept && !log.Enabled(level) {
		return
	}
	var d Decision
	s.describe(&d, t)
	d.Action, d.To, d.Reply = action, s.showAll(to), s.hide(t, f, reply.String())
	d.Finding = *f
	if kept {
		t.recorded = true
		d.Parties = log.Parties(len(to), func(i int) string { return to[i].String() }, d.From, t.Message.HeaderSenders)
	}
	log.Write(level, text, &d, more...)
}

// describe sets what a decision says of the message and its client.
func (s *session) describe(d *Decision, t *transaction) {
	d.ID, d.Judge, d.MessageID, d.Began = t.id, t.Judge, t.messageID, t.began
	d.Listener = s.peer.listener.name
	d.Client, d.Helo = t.client.Addr.String(), t.client.Helo
	d.TLS, d.Authenticated = tlsVersion(s.conn.TLS()), s.conn.Authenticated()
	d.From = t.from.String()
	if logged := s.conn.Forwarded(); logged.Addr != t.client.Addr {
		d.ForwardedFor = logged.Addr.String()
	}
	if of, ok := t.next.(interface{ Server() string }); ok {
		d.Server = of.Server()
	}
}

// tlsVersion returns "TLSv1.3" for example, or "none".
func tlsVersion(state *tls.ConnectionState) string {
	if state == nil {
		return "none"
	}
	return strings.Replace(tls.VersionName(state.Version), "TLS ", "TLSv", 1)
}

// showAll returns recipients as the log shows them.
func (s *session) showAll(to []wire.Path) string {
	return s.server.decisions().ShowAll(len(to), func(i int) string { return to[i].String() })
}

// hide replaces the addresses of the transaction in a text by what the log shows: a next
// hop's reply often repeats a recipient.
func (s *session) hide(t *transaction, f *verdict.Finding, text string) string {
	log := s.server.decisions()
	text = log.Hide(text, t.from.String(), s.conn.Command().Path.String(), f.Address, f.Verdict.Match.Sender)
	for _, r := range t.accepted {
		text = log.Hide(text, r.path.String())
	}
	return text
}

// nextHopAttr returns the attribute for the next hop's reply, which the client received.
func (s *session) nextHopAttr(t *transaction, reply wire.Reply) slog.Attr {
	return slog.String("next_hop", s.hide(t, &noFinding, reply.String()))
}

// errAttr returns the attribute for an error.
func (s *session) errAttr(t *transaction, err error) slog.Attr {
	return slog.String("error", s.hide(t, &noFinding, err.Error()))
}
