package smtpfilter

import (
	"context"
	"crypto/tls"
	"fmt"
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
	f := verdict.Strictest(append([]verdict.Finding{t.envelope}, t.findings...))
	action, exempt := f.Verdict.Action, t.exempt
	if action > verdict.Tag {
		action, exempt = verdict.Accept, "recipient" // the sender is listed, but every recipient is exempt
	}
	s.log(slog.LevelInfo, text, t, f, t.recipients(), action.String(), wire.Reply{},
		s.nextHopAttr(t, reply), slog.String("exempt", exempt), slog.Int64("size", size))
}

// logRefusal logs a sender that was refused, or that could not be looked up.
func (s *session) logRefusal(t *transaction, f verdict.Finding, to []wire.Path, action verdict.Action, reply wire.Reply) {
	t.outcome = OutcomeListed
	if f.NoAnswer() {
		t.outcome = OutcomeFailed
		cause := strings.TrimPrefix(f.Err.Error(), verdict.ErrNoAnswer.Error()+": ") // the text says that
		s.log(slog.LevelError, "lists cannot be asked", t, f, to, action.String(), reply,
			slog.String("error", s.hide(t, f, cause)))
		return
	}
	if shown := s.show(f.Address); shown != f.Address && !f.Verdict.Match.IsZero() {
		// The reply may have only a part of the address, or "?" in it, so that hide
		// would not find the address. It is written again with what the log may show.
		hidden := f
		hidden.Address, hidden.Form = shown, s.show(f.Form)
		reply = t.settings.Policy.Refusal(hidden, t.id)
	}
	s.log(slog.LevelInfo, "refused", t, f, to, action.String(), reply)
}

// logDiscarded logs a message that was accepted and dropped.
func (s *session) logDiscarded(t *transaction, f verdict.Finding, to []wire.Path) {
	s.log(slog.LevelWarn, "discarded", t, f, to, verdict.Discard.String(), wire.Reply{})
}

// maxLines bounds the lines about the senders in one header.
const maxLines = 10

// logMonitored logs each entry that only monitors, and what it would have done without
// the monitor mode.
func (s *session) logMonitored(t *transaction, findings []verdict.Finding) {
	for _, f := range findings {
		for _, m := range f.Verdict.Monitored[:min(maxLines, len(f.Verdict.Monitored))] {
			f.Verdict.Match = m
			var would []slog.Attr
			if m.Action != verdict.Accept {
				would = []slog.Attr{slog.String("would", m.Action.String())}
			}
			s.log(slog.LevelInfo, "monitored", t, f, nil, "monitor", wire.Reply{}, would...)
		}
	}
}

// logUnreadable logs the first address in the header that could not be looked up, and how
// many there are.
func (s *session) logUnreadable(t *transaction, h headerFindings) {
	if h.unreadables > 0 {
		first := h.unreadable
		s.log(slog.LevelInfo, "header address not understood", t, first, nil, verdict.Accept.String(), wire.Reply{},
			slog.Int("addresses", h.unreadables), slog.String("error", s.hide(t, first, first.Err.Error())))
	}
}

// logNextHopFailure logs a next hop that could not be asked, or did not answer.
func (s *session) logNextHopFailure(t *transaction, to []wire.Path, reply wire.Reply, err error) {
	t.outcome = OutcomeFailed
	s.log(slog.LevelError, "next hop failed", t, verdict.Finding{}, to, verdict.Defer.String(), reply, s.errAttr(t, err))
}

// logBytesRefused logs a message that was refused because of its bytes, size or form.
func (s *session) logBytesRefused(t *transaction, size int64, reply wire.Reply, err error) {
	action := verdict.Reject
	if reply.Temporary() {
		action = verdict.Defer
	}
	s.log(slog.LevelInfo, "message refused", t, verdict.Finding{}, t.recipients(), action.String(), reply,
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
func (s *session) log(level slog.Level, text string, t *transaction, f verdict.Finding, to []wire.Path, action string, reply wire.Reply, more ...slog.Attr) {
	log := s.server.cfg.Log
	if !log.Enabled(context.Background(), level) {
		return
	}
	show := s.server.cfg.ShowAddress
	attrs := make([]slog.Attr, 0, 24)
	str := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	str("id", t.id)
	str("action", action)
	if t.judge != nil {
		attrs = append(attrs, slog.Uint64("generation", t.judge.Generation()))
	}
	str("listener", s.peer.listener.name)
	str("client", t.client.Addr.String())
	if logged := s.conn.Forwarded(); logged.Addr != t.client.Addr {
		str("forwarded_for", logged.Addr.String())
	}
	str("helo", t.client.Helo)
	str("tls", tlsVersion(s.conn.TLS()))
	if s.conn.Authenticated() {
		attrs = append(attrs, slog.Bool("authenticated", true))
	}
	str("from", "<"+s.show(t.from.String())+">")
	str("to", s.showAll(to))
	str("message_id", t.messageID)
	str("identity", f.Identity)
	if f.Identity != verdict.EnvelopeIdentity {
		str("sender", s.show(f.Address))
		str("form", s.show(f.Form))
	}
	if m := f.Verdict.Match; !m.IsZero() {
		str("list", m.List)
		entry := m.Entry
		if local, _, ok := strings.Cut(entry, "@"); ok && local != "" {
			entry = show(entry)
		}
		str("entry", entry)
		if m.Unconfirmed {
			attrs = append(attrs, slog.Bool("confirmed", false))
		} else if m.File != "" {
			str("source", fmt.Sprintf("%s:%d", m.File, m.Line))
		}
		str("reason", m.Reason)
		str("note", m.Note)
	}
	str("reply", s.hide(t, f, reply.String()))
	if of, ok := t.next.(interface{ Server() string }); ok {
		str("server", of.Server())
	}
	for _, a := range more {
		if a.Value.Kind() != slog.KindString || a.Value.String() != "" {
			attrs = append(attrs, a)
		}
	}
	attrs = append(attrs, slog.String("duration", time.Since(t.began).Round(time.Microsecond).String()))
	// LogAttrs would look up the caller, which the log does not show.
	r := slog.NewRecord(time.Now(), level, text, 0)
	r.AddAttrs(attrs...)
	_ = log.Handler().Handle(context.Background(), r) // a failure does not change the decision
}

// tlsVersion returns "TLSv1.3" for example, or "none".
func tlsVersion(state *tls.ConnectionState) string {
	if state == nil {
		return "none"
	}
	return strings.Replace(tls.VersionName(state.Version), "TLS ", "TLSv", 1)
}

// show returns an address as the log shows it.
func (s *session) show(address string) string {
	if address == "" {
		return ""
	}
	return s.server.cfg.ShowAddress(address)
}

// maxShown bounds the recipients in one line, in bytes.
const maxShown = 2048

// showAll returns recipients as the log shows them: all, or as many as fit and the number
// of the others.
func (s *session) showAll(to []wire.Path) string {
	var b strings.Builder
	for i, rcpt := range to {
		shown := "<" + s.show(rcpt.String()) + ">"
		if b.Len()+len(shown) > maxShown {
			fmt.Fprintf(&b, " and %d more", len(to)-i)
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(shown)
	}
	return b.String()
}

// hide replaces the addresses of the transaction in a text by what the log shows: a next
// hop's reply often repeats a recipient.
func (s *session) hide(t *transaction, f verdict.Finding, text string) string {
	hide := func(address string) {
		if address != "" && strings.Contains(text, address) {
			text = strings.ReplaceAll(text, address, s.show(address))
		}
		if public := PublicText(address); public != address && strings.Contains(text, public) {
			if shown := s.show(address); shown != address {
				text = strings.ReplaceAll(text, public, shown)
			}
		}
	}
	hide(t.from.String())
	hide(s.conn.Command().Path.String())
	hide(f.Address)
	for _, r := range t.accepted {
		hide(r.path.String())
	}
	return text
}

// nextHopAttr returns the attribute for the next hop's reply, which the client received.
func (s *session) nextHopAttr(t *transaction, reply wire.Reply) slog.Attr {
	return slog.String("next_hop", s.hide(t, verdict.Finding{}, reply.String()))
}

// errAttr returns the attribute for an error.
func (s *session) errAttr(t *transaction, err error) slog.Attr {
	return slog.String("error", s.hide(t, verdict.Finding{}, err.Error()))
}
