package door

import (
	"log/slog"
	"slices"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/wire"
)

// decisions returns the log of decisions.
func (d *Door) decisions() smtpfilter.DecisionLog {
	return smtpfilter.DecisionLog{Log: d.cfg.Log, ShowAddress: d.cfg.ShowAddress, History: d.cfg.History}
}

// log logs a decision about the message.
func (m *Message) log(level slog.Level, text string, f verdict.Finding, to []string, action string, reply wire.Reply, more ...slog.Attr) {
	log := m.door.decisions()
	kept := log.Wanted(text, &f, m.recorded)
	if !kept && !log.Enabled(level) {
		return
	}
	d := smtpfilter.Decision{
		ID:            m.id,
		Action:        action,
		Judge:         m.judged.Judge,
		Door:          m.door.cfg.Protocol,
		Listener:      m.door.cfg.Name,
		Helo:          m.envelope.Helo,
		Authenticated: m.envelope.Login != "",
		From:          m.envelope.From,
		To:            showAll(log, to),
		MessageID:     m.messageID,
		QueueID:       m.envelope.QueueID,
		Finding:       f,
		Reply:         log.Hide(reply.String(), append(to, m.envelope.From, f.Address, f.Verdict.Match.Sender)...),
		Began:         m.began,
	}
	if kept {
		m.recorded = true
		d.Parties = log.Parties(len(to), func(i int) string { return to[i] }, d.From, m.judged.Message.HeaderSenders)
	}
	switch client := m.envelope.Client; {
	case client.IsValid() && client.Port() == 0: // the mail server has not told it
		d.Client = client.Addr().String()
	case client.IsValid():
		d.Client = client.String()
	}
	log.Write(level, text, &d, more...)
}

// logRefusal logs a sender that was refused, or that could not be looked up. Refused are the
// recipients for whom alone it is, or nil.
func (m *Message) logRefusal(f *verdict.Finding, a Answer, to, refused []string) {
	if f.NoAnswer() {
		m.log(slog.LevelError, "lists cannot be asked", *f, to, a.Action.String(), a.Reply,
			slog.String("error", m.door.decisions().Hide(smtpfilter.WhyNoAnswer(f.Err), m.envelope.From, f.Address)))
		return
	}
	decisions := m.door.decisions()
	m.log(slog.LevelInfo, "refused", *f, to, a.Action.String(), decisions.Refusal(m.judged.Policy, f, m.id, a.Reply, refused...),
		slog.String("refused_for", showAll(decisions, refused)))
}

func showAll(log smtpfilter.DecisionLog, paths []string) string {
	return log.ShowAll(len(paths), func(i int) string { return paths[i] })
}

// firstRefusal reports whether a refusal of a recipient is to be logged, see Config.Once.
func (m *Message) firstRefusal(r wire.Reply) bool {
	if !m.door.cfg.Once {
		return true
	}
	text := r.String()
	if slices.Contains(m.logged, text) || len(m.logged) == maxLogged {
		return false
	}
	m.logged = append(m.logged, text)
	return true
}

// maxLogged bounds the lines about a message that is refused for recipients in different words,
// see Config.Once.
const maxLogged = 10

// outcomeOf returns what becomes of a message that is refused because of a finding.
func outcomeOf(f *verdict.Finding) smtpfilter.Outcome {
	if f.NoAnswer() {
		return smtpfilter.OutcomeFailed
	}
	return smtpfilter.OutcomeListed
}

// logAccepted logs a message that a recipient gets.
func (m *Message) logAccepted() {
	f, action, exempt := m.judged.Shown()
	refused := ""
	if f.Verdict.Action > action && action == verdict.Tag {
		refused = showAll(m.door.decisions(), m.pathsThat(m.judged.Refusing()))
	}
	m.log(slog.LevelInfo, "accepted", *f, m.paths(), action.String(), wire.Reply{},
		slog.String("exempt", exempt), slog.String("refused_for", refused))
}

// logDiscarded logs for which recipients a message is dropped, a line for each class of them.
func (m *Message) logDiscarded() {
	for _, class := range m.judged.Used() {
		if class.Dropped {
			to := m.pathsThat(func(of *smtpfilter.Class) bool { return of == class })
			m.log(slog.LevelWarn, "discarded", *class.Decides(), to, verdict.Discard.String(), wire.Reply{})
		}
	}
}

// observe logs the entries about the reverse-path that only monitor, each once for a message.
func (m *Message) observe(classes ...*smtpfilter.Class) {
	for _, class := range classes {
		m.logMonitored(m.judged.Monitored(class))
	}
}

// logMonitored logs each entry that only monitors.
func (m *Message) logMonitored(findings []verdict.Finding) {
	smtpfilter.EachMonitored(findings, func(f verdict.Finding, would []slog.Attr) {
		m.log(slog.LevelInfo, "monitored", f, nil, "monitor", wire.Reply{}, would...)
	})
}

// logUnreadable logs the first address in the header that could not be looked up, and how
// many there are.
func (m *Message) logUnreadable(h smtpfilter.HeaderFindings) {
	if h.Unreadables > 0 {
		first := h.Unreadable
		m.log(slog.LevelInfo, "header address not understood", first, nil, verdict.Accept.String(), wire.Reply{},
			slog.Int("addresses", h.Unreadables),
			slog.String("error", m.door.decisions().Hide(first.Err.Error(), m.envelope.From, first.Address)))
	}
}
