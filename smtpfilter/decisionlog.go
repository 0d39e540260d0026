package smtpfilter

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/wire"
)

// Every decision is one line. What there is to say of the message comes first,
// always in the same order; the message text names the kind of decision.

// logOutcome is the line of a message that the next hop has answered for.
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
		action, exempt = verdict.Accept, "recipient" // listed, but every recipient was exempt
	}
	s.log(slog.LevelInfo, text, t, f, t.recipients(), action.String(), wire.Reply{},
		s.nextHopAttr(t, reply), slog.String("exempt", exempt), slog.Int64("size", size))
}

// logUnknown is the line of a message that the next hop was given whole and did
// not answer for, for some recipients or all: it may or may not be there.
func (s *session) logUnknown(t *transaction, to []wire.Path, size int64, reply wire.Reply, err error) {
	t.outcome = OutcomeUnknown
	s.log(slog.LevelError, "no answer from the next hop", t, verdict.Finding{}, to, verdict.Defer.String(), reply,
		slog.String("outcome", "unknown"), slog.Int64("size", size), s.errAttr(t, err))
}

// logRefusal is the line of a sender that was turned away, or that could not be
// looked up.
func (s *session) logRefusal(t *transaction, f verdict.Finding, to []wire.Path, action verdict.Action, reply wire.Reply) {
	t.outcome = OutcomeListed
	if f.NoAnswer() {
		t.outcome = OutcomeFailed
		cause := strings.TrimPrefix(f.Err.Error(), verdict.ErrNoAnswer.Error()+": ") // the message says that
		s.log(slog.LevelError, "lists cannot be asked", t, f, to, action.String(), reply,
			slog.String("error", s.hide(t, f, cause)))
		return
	}
	if shown := s.show(f.Address); shown != f.Address && !f.Verdict.Match.IsZero() {
		// The reply has a part of the address, or "?" for some of it: it is written once
		// more, with what the log may show.
		hidden := f
		hidden.Address, hidden.Form = shown, s.show(f.Form)
		reply = t.settings.Policy.refusal(action, hidden, t.id)
	}
	s.log(slog.LevelInfo, "refused", t, f, to, action.String(), reply)
}

// logDiscarded is the line of a message that was taken and dropped.
func (s *session) logDiscarded(t *transaction, f verdict.Finding) {
	s.log(slog.LevelWarn, "discarded", t, f, t.discarded, verdict.Discard.String(), wire.Reply{})
}

// maxLines bounds the lines that one message can cause for its header's
// senders.
const maxLines = 10

// logMonitored is a line for each entry that only observes. Where the entry
// would have done something, were it not for the monitor mode, it says what.
func (s *session) logMonitored(t *transaction, findings []verdict.Finding) {
	seen := map[place]bool{}
	for _, f := range findings {
		for _, m := range f.Verdict.Monitored {
			at := place{m.List, m.File, m.Line}
			if seen[at] || len(seen) == maxLines {
				continue
			}
			seen[at] = true
			f.Verdict.Match = m
			var would []slog.Attr
			if m.Action != verdict.Accept {
				would = []slog.Attr{slog.String("would", m.Action.String())}
			}
			s.log(slog.LevelInfo, "monitored", t, f, nil, "monitor", wire.Reply{}, would...)
		}
	}
}

// logUnreadable is a line about the addresses of the header that could not be
// looked up: the first one, and how many there are.
func (s *session) logUnreadable(t *transaction, h headerFindings) {
	if h.unreadables > 0 {
		first := h.unreadable
		s.log(slog.LevelInfo, "header address not understood", t, first, nil, verdict.Accept.String(), wire.Reply{},
			slog.Int("addresses", h.unreadables), slog.String("error", s.hide(t, first, first.Err.Error())))
	}
}

func (s *session) logRelayDenied(t *transaction, rcpt wire.Path, reply wire.Reply) {
	s.log(slog.LevelInfo, "relay denied", t, verdict.Finding{}, []wire.Path{rcpt}, verdict.Reject.String(), reply)
}

// logNextHopRefusal is the line of a recipient that the next hop has refused.
func (s *session) logNextHopRefusal(t *transaction, rcpt wire.Path, reply wire.Reply) {
	t.outcome = OutcomeNextHop
	s.log(slog.LevelInfo, "refused by the next hop", t, t.envelope, []wire.Path{rcpt}, verdict.Accept.String(), wire.Reply{},
		s.nextHopAttr(t, reply))
}

func (s *session) logNextHopFailure(t *transaction, to []wire.Path, reply wire.Reply, err error) {
	t.outcome = OutcomeFailed
	s.log(slog.LevelError, "next hop failed", t, verdict.Finding{}, to, verdict.Defer.String(), reply, s.errAttr(t, err))
}

// logBytesRefused is the line of a message that was refused for how it came.
func (s *session) logBytesRefused(t *transaction, size int64, reply wire.Reply, err error) {
	action := verdict.Reject
	if reply.Temporary() {
		action = verdict.Defer
	}
	s.log(slog.LevelInfo, "message refused", t, verdict.Finding{}, t.recipients(), action.String(), reply,
		slog.Int64("size", size), s.errAttr(t, err))
}

// logGivenUp is the line of a message whose client has not sent all of its chunks.
func (s *session) logGivenUp(t *transaction, size int64) {
	t.outcome = OutcomeAbandoned
	s.log(slog.LevelInfo, "given up by the client", t, verdict.Finding{}, t.recipients(), "", wire.Reply{}, slog.Int64("size", size))
}

func (s *session) logNoAddress(t *transaction, field string) {
	s.log(slog.LevelInfo, "header field without an address", t, verdict.Finding{Identity: field}, nil, verdict.Accept.String(), wire.Reply{})
}

// logBadCommand is a line for each MAIL and RCPT that could not be taken for one,
// or asked for what is not offered. Where addresses are not to be seen, the
// command's line is not shown: what is no address can't be hidden as one.
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

// logNoticed is a line for what a client should not have done.
func (l *Listener) logNoticed(c *wire.Conn, what string) {
	l.logConn(c, slog.LevelInfo, "noticed", slog.String("what", what))
}

// logAcceptFailed is a line for clients that can't be let in now.
func (l *Listener) logAcceptFailed(err error) {
	l.server.cfg.Log.Error("cannot take a client now, trying again", "listener", l.name, "error", err)
}

// logAuth is a line for each AUTH, with nothing of what was exchanged: of the reply
// its codes only, since next hops repeat there what they were sent. That it is
// the client who has failed is said where it is so alone: "authentication failed"
// is what programs look for that keep clients out.
func (l *Listener) logAuth(c *wire.Conn, mechanism string, reply wire.Reply, failure, faulty error) {
	level, text := slog.LevelInfo, "authenticated"
	switch {
	case failure != nil && faulty == nil:
		level, text = slog.LevelError, "authentication not possible now"
	case !reply.Positive():
		text = "authentication failed"
	}
	attrs := []slog.Attr{slog.String("mechanism", mechanism), slog.String("reply", reply.CodesOnly().String())}
	if err := errors.Join(failure, faulty); err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	l.logConn(c, level, text, attrs...)
}

// logConn is a line about a connection.
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

// logClosed is a line for each connection, for those who look for one: at
// debug, or at info where the gate has hung up on a client that broke the rules.
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

// log writes one line.
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
	// LogAttrs would look up the caller, which no line shows.
	r := slog.NewRecord(time.Now(), level, text, 0)
	r.AddAttrs(attrs...)
	_ = log.Handler().Handle(context.Background(), r) // nobody to tell; the decision stands
}

// tlsVersion is "TLSv1.3", or "none".
func tlsVersion(state *tls.ConnectionState) string {
	if state == nil {
		return "none"
	}
	return strings.Replace(tls.VersionName(state.Version), "TLS ", "TLSv", 1)
}

// show is an address as the log has it.
func (s *session) show(address string) string {
	if address == "" {
		return ""
	}
	return s.server.cfg.ShowAddress(address)
}

// maxShown bounds the recipients in a line, in bytes.
const maxShown = 2048

// showAll returns recipients as the log has them: all, or as many as fit, and how
// many more there are.
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

// hide writes the addresses that are known here, where they occur in a text, as
// the log has them: a next hop's reply often repeats a recipient.
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

// nextHopAttr is the next hop's reply, which is the client's reply, too.
func (s *session) nextHopAttr(t *transaction, reply wire.Reply) slog.Attr {
	return slog.String("next_hop", s.hide(t, verdict.Finding{}, reply.String()))
}

func (s *session) errAttr(t *transaction, err error) slog.Attr {
	return slog.String("error", s.hide(t, verdict.Finding{}, err.Error()))
}
