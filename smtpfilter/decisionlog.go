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

// logOutcome logs a message with the next hop's reply.
func (s *session) logOutcome(t *transaction, size int64, reply wire.Reply) {
	f, action, exempt := t.Shown()
	d := verdict.Decision{Event: verdict.EventAccepted, NextHop: s.shown(t, reply.String()), Exempt: exempt, Size: size, Sized: true}
	t.outcome = OutcomeAccepted
	if !reply.Positive() {
		d.Event = "refused by the next hop"
		t.outcome = OutcomeNextHop
	}
	if f.Verdict.Action > action && action == verdict.Tag {
		d.RefusedFor = s.showAll(t.refusing())
	}
	if action == verdict.Accept && len(t.tags) > 0 { // what the tags say is not so after all
		action, d.TaggedAhead = verdict.Tag, strings.Join(t.tags, ", and one: ")
	}
	d.Action = action.String()
	s.log(t, f, t.recipients(), wire.Reply{}, &d)
}

// logRefusal logs a sender that was refused, or that could not be looked up. Refused are the
// recipients for whom alone it is, or nil.
func (s *session) logRefusal(t *transaction, f *verdict.Finding, to []wire.Path, reply wire.Reply, refused []wire.Path) {
	if noAnswer(f) {
		t.outcome = OutcomeFailed
		s.log(t, f, to, reply, &verdict.Decision{Event: "lists cannot be asked", Error: s.hide(t, f, WhyNoAnswer(f.Err))})
		return
	}
	t.outcome = OutcomeListed
	d := verdict.Decision{Event: "refused", Action: refusal(reply), RefusedFor: s.showAll(refused)}
	s.log(t, f, to, s.server.decisions().Refusal(t.Policy, f, t.id, reply, texts(refused)...), &d)
}

// refusal returns the name of the action that a reply of the gate's own amounts to.
func refusal(reply wire.Reply) string {
	if reply.Temporary() {
		return verdict.Defer.String()
	}
	return verdict.Reject.String()
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
		s.log(t, class.Decides(), to, wire.Reply{}, &verdict.Decision{Event: "discarded"})
	}
}

// observe logs the entries about the reverse-path that only monitor, each once for a message.
func (s *session) observe(t *transaction, class *Class) {
	s.logMonitored(t, t.Monitored(class))
}

// logMonitored logs each entry that only monitors.
func (s *session) logMonitored(t *transaction, findings []verdict.Finding) {
	EachMonitored(findings, func(f verdict.Finding, phrase string) {
		s.log(t, &f, nil, wire.Reply{}, &verdict.Decision{Event: verdict.EventMonitored, Would: phrase})
	})
}

// logUnreadable logs the first address in the header that could not be looked up, and how
// many there are.
func (s *session) logUnreadable(t *transaction, h *HeaderFindings) {
	if h.Unreadables > 0 {
		first := &h.Unreadable
		s.log(t, first, nil, wire.Reply{}, &verdict.Decision{
			Event: "header address not understood", Addresses: h.Unreadables, Error: s.hide(t, first, first.Err.Error())})
	}
}

// logNextHopFailure logs a next hop that could not be asked, or did not answer.
func (s *session) logNextHopFailure(t *transaction, to []wire.Path, reply wire.Reply, err error) {
	t.outcome = OutcomeFailed
	s.log(t, &noFinding, to, reply, &verdict.Decision{Event: "next hop failed", Error: s.shown(t, err.Error())})
}

// logBytesRefused logs a message that was refused because of its bytes, size or form.
func (s *session) logBytesRefused(t *transaction, size int64, reply wire.Reply, err error) {
	s.log(t, &noFinding, t.recipients(), reply, &verdict.Decision{
		Event: "message refused", Action: refusal(reply), Size: size, Sized: true, Error: s.shown(t, err.Error())})
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

// log logs a decision about a message, of which d has what the caller knows.
func (s *session) log(t *transaction, f *verdict.Finding, to []wire.Path, reply wire.Reply, d *verdict.Decision) {
	log := s.server.decisions()
	if !log.Wants(d, f, &t.recorded) {
		return
	}
	d.ID, d.Judge, d.MessageID, d.Duration = t.id, t.Judge, t.messageID, time.Since(t.began)
	d.Client = t.client.Addr.String()
	d.TLS, d.Authenticated = tlsVersion(s.conn.TLS()), s.conn.Authenticated()
	if logged := s.conn.Forwarded(); logged.Addr != t.client.Addr {
		d.ForwardedFor = logged.Addr.String()
	}
	if target, ok := t.next.(interface{ Server() string }); ok {
		d.Server = target.Server()
	}
	d.Reply = s.hide(t, f, reply.String())
	log.Write(d, &t.Message, f, len(to), func(i int) string { return to[i].String() })
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

// shown returns a text of a next hop or an error as the log shows it.
func (s *session) shown(t *transaction, text string) string { return s.hide(t, &noFinding, text) }
