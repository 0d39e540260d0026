package door

import (
	"slices"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/wire"
)

// decisions returns the log of decisions.
func (d *Door) decisions() smtpfilter.DecisionLog {
	return smtpfilter.DecisionLog{Log: d.cfg.Log, ShowAddress: d.cfg.ShowAddress, History: d.cfg.History}
}

// log logs a decision about the message, of which d has what the caller knows.
func (m *Message) log(f *verdict.Finding, to []string, reply wire.Reply, d *verdict.Decision) {
	log := m.door.decisions()
	if !log.Wants(d, f, &m.recorded) {
		return
	}
	d.ID, d.Judge, d.MessageID, d.Duration = m.id, m.judged.Judge, m.messageID, time.Since(m.began)
	d.Door, d.Authenticated, d.QueueID = m.door.cfg.Protocol, m.envelope.Login != "", m.envelope.QueueID
	switch client := m.envelope.Client; {
	case client.IsValid() && client.Port() == 0: // the mail server has not told it
		d.Client = client.Addr().String()
	case client.IsValid():
		d.Client = client.String()
	}
	d.Reply = log.Hide(reply.String(), append(to, m.envelope.From, f.Address, f.Verdict.Match.Sender)...)
	log.Write(d, &m.judged.Message, f, len(to), func(i int) string { return to[i] })
}

// logRefusal logs a sender that was refused, or that could not be looked up. Refused are the
// recipients for whom alone it is, or nil.
func (m *Message) logRefusal(f *verdict.Finding, a Answer, to, refused []string) {
	decisions := m.door.decisions()
	if f.NoAnswer() {
		m.log(f, to, a.Reply, &verdict.Decision{
			Event: "lists cannot be asked", Error: decisions.Hide(smtpfilter.WhyNoAnswer(f.Err), m.envelope.From, f.Address)})
		return
	}
	m.log(f, to, decisions.Refusal(m.judged.Policy, f, m.id, a.Reply, refused...), &verdict.Decision{
		Event: "refused", Action: a.Action.String(), RefusedFor: showAll(decisions, refused)})
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
	d := verdict.Decision{Event: verdict.EventAccepted, Action: action.String(), Exempt: exempt}
	if f.Verdict.Action > action && action == verdict.Tag {
		d.RefusedFor = showAll(m.door.decisions(), m.pathsThat(m.judged.Refusing()))
	}
	m.log(f, m.paths(), wire.Reply{}, &d)
}

// logDiscarded logs for which recipients a message is dropped, a line for each class of them.
func (m *Message) logDiscarded() {
	for _, class := range m.judged.Used() {
		if class.Dropped {
			to := m.pathsThat(func(other *smtpfilter.Class) bool { return other == class })
			m.log(class.Decides(), to, wire.Reply{}, &verdict.Decision{Event: "discarded"})
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
	smtpfilter.EachMonitored(findings, func(f verdict.Finding, phrase string) {
		m.log(&f, nil, wire.Reply{}, &verdict.Decision{Event: verdict.EventMonitored, Would: phrase})
	})
}

// logUnreadable logs the first address in the header that could not be looked up, and how
// many there are.
func (m *Message) logUnreadable(h smtpfilter.HeaderFindings) {
	if h.Unreadables > 0 {
		first := &h.Unreadable
		m.log(first, nil, wire.Reply{}, &verdict.Decision{Event: "header address not understood", Addresses: h.Unreadables,
			Error: m.door.decisions().Hide(first.Err.Error(), m.envelope.From, first.Address)})
	}
}
