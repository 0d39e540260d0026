package door

import (
	"log/slog"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/wire"
)

// decisions returns the log of decisions.
func (d *Door) decisions() smtpfilter.DecisionLog {
	return smtpfilter.DecisionLog{Log: d.cfg.Log, ShowAddress: d.cfg.ShowAddress}
}

// log logs a decision about the message.
func (m *Message) log(level slog.Level, text string, f verdict.Finding, to []string, action string, reply wire.Reply, more ...slog.Attr) {
	log := m.door.decisions()
	if !log.Enabled(level) {
		return
	}
	d := smtpfilter.Decision{
		ID:            m.id,
		Action:        action,
		Judge:         m.judge,
		Door:          m.door.cfg.Protocol,
		Listener:      m.door.cfg.Name,
		Helo:          m.envelope.Helo,
		Authenticated: m.envelope.Login != "",
		From:          m.envelope.From,
		To:            log.ShowAll(len(to), func(i int) string { return to[i] }),
		MessageID:     m.messageID,
		QueueID:       m.envelope.QueueID,
		Finding:       f,
		Reply:         log.Hide(reply.String(), append(to, m.envelope.From, f.Address)...),
		Began:         m.began,
	}
	switch client := m.envelope.Client; {
	case client.IsValid() && client.Port() == 0: // the mail server has not told it
		d.Client = client.Addr().String()
	case client.IsValid():
		d.Client = client.String()
	}
	log.Write(level, text, &d, more...)
}

// logRefusal logs a sender that was refused, or that could not be looked up.
func (m *Message) logRefusal(f verdict.Finding, a Answer, to []string) {
	if m.door.cfg.Once && m.logged {
		return
	}
	m.logged = true
	if m.door.cfg.Once {
		m.count(outcomeOf(f))
	}
	if f.NoAnswer() {
		m.log(slog.LevelError, "lists cannot be asked", f, to, a.Action.String(), a.Reply,
			slog.String("error", m.door.decisions().Hide(smtpfilter.WhyNoAnswer(f.Err), m.envelope.From, f.Address)))
		return
	}
	m.log(slog.LevelInfo, "refused", f, to, a.Action.String(), m.door.decisions().Refusal(&m.settings.Policy, f, m.id, a.Reply))
}

// outcomeOf returns what becomes of a message that is refused because of a finding.
func outcomeOf(f verdict.Finding) smtpfilter.Outcome {
	if f.NoAnswer() {
		return smtpfilter.OutcomeFailed
	}
	return smtpfilter.OutcomeListed
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
