package door

import (
	"bytes"
	"io"
	"slices"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/header"
	"spamgate/smtpfilter/wire"
)

// Header judges the header section: lines with CRLF or LF, without the empty line at the end,
// which must not change before End. The names are those of the mail server, which may complete
// addresses with them.
func (m *Message) Header(section []byte, names []string) {
	m.section = section
	section = bytes.TrimSuffix(section, []byte("\r\n"))
	if m.judge == nil || m.misread() {
		m.messageID = header.Senders(section, nil).MessageID
		return
	}
	m.classes.ReadSignatures(m.ctx, section, m.used)
	if !m.classes.JudgesHeader(m.used) {
		m.messageID = header.Senders(section, nil).MessageID
		return
	}
	senders := m.settings.Policy.ReadHeader(section, names)
	m.messageID = senders.MessageID
	findings := m.classes.JudgeHeader(m.ctx, senders, m.used)
	if fault := senders.Fault(); fault != nil && !m.onlyExempt() {
		m.fault = fault
		return
	}
	for _, field := range senders.FieldsWithoutAddress() {
		m.log(verdict.Finding{Identity: field}, nil, wire.Reply{}, &verdict.Decision{Event: "header field without an address"})
	}
	m.logUnreadable(findings)
	m.logMonitored(findings.Monitored)
}

// Content returns what takes the body, after the header. It is nil if nothing depends on the
// body.
func (m *Message) Content() io.Writer {
	if m.settings.Signatures == nil || m.fault != nil || m.judge == nil {
		return nil
	}
	if d := m.classes.Decide(m.used); !d.Pending {
		return nil
	}
	domains := m.classes.Awaited(m.used)
	if len(domains) == 0 {
		return nil
	}
	m.verification = m.settings.Signatures.Verify(m.ctx, domains)
	writeLines(m.verification, m.section)
	return m.verification
}

// writeLines writes a header section and the empty line after it, with CRLF.
func writeLines(w io.Writer, section []byte) {
	var lines []byte
	for line := range bytes.Lines(section) {
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		lines = append(append(lines, line...), "\r\n"...)
	}
	_, _ = w.Write(append(lines, "\r\n"...)) // it never fails
}

// End returns the answer at the end of the message. An Answer with Discard concerns the
// recipients that Discarded returns then. If Content was not called, or takes nothing, a proof
// that is pending counts as one that holds: the milder verdict.
func (m *Message) End() Answer {
	if m.fault != nil {
		return m.refuse(m.fault.Reply(m.id), m.fault.Err)
	}
	if m.verification != nil {
		m.classes.Finish(m.ctx, m.verification.Finish(), m.used)
	}
	c := m.classes.Decide(m.used)
	if c.Pending {
		m.classes.AssumeProved(m.used)
		c = m.classes.Decide(m.used)
	}
	m.observe(m.used...)
	if c.Refuses() {
		return m.refuseSender(&c)
	}
	if m.discardRest(); len(m.discarded) > 0 {
		return Answer{Action: verdict.Discard, DiscardTag: smtpfilter.TagOf(m.discarded[0].class.Decides()), Tags: c.Tags}
	}
	a := Answer{Action: c.Finding.Verdict.Action, Tags: c.Tags}
	if len(a.Tags) > 0 {
		a.Action = verdict.Tag // also if the sender is refused for some
	}
	return a
}

// refuseSender refuses the message for all recipients, because of a sender that is refused for
// one of them at least.
func (m *Message) refuseSender(c *smtpfilter.Conclusion) Answer {
	f, policy := c.Finding, &m.settings.Policy
	a := Answer{Reply: policy.Refusal(f, m.id), NoAnswer: f.NoAnswer(), Action: f.Verdict.Action}
	var refused []string
	if c.Mixed {
		refused = m.refusing()
		a.Reply = policy.RefusalForSome(f, m.id, refused)
	}
	m.logRefusal(f, a, m.paths(), refused)
	m.count(outcomeOf(f))
	return a
}

// refusing returns the recipients for whom the message is refused.
func (m *Message) refusing() []string {
	classes := m.classesThat(verdict.Action.Refuses)
	var paths []string
	for _, r := range m.accepted {
		if slices.Contains(classes, r.class) {
			paths = append(paths, r.path)
		}
	}
	return paths
}

// classesThat returns the classes that decide for some actions.
func (m *Message) classesThat(is func(verdict.Action) bool) []*smtpfilter.Class {
	var classes []*smtpfilter.Class
	for _, c := range m.used {
		if is(c.Decides().Verdict.Action) {
			classes = append(classes, c)
		}
	}
	return classes
}

// discardRest discards the message for the recipients whose lists say so.
func (m *Message) discardRest() {
	classes := m.classesThat(verdict.Action.Drops)
	if classes == nil {
		return
	}
	m.accepted = slices.DeleteFunc(m.accepted, func(r recipient) bool {
		discard := slices.Contains(classes, r.class)
		if discard {
			m.discarded = append(m.discarded, r)
		}
		return discard
	})
}

// Passed logs and counts a message that the mail server may have. Tagged says that discarded
// recipients get it too, with a tag, since the protocol cannot discard it.
func (m *Message) Passed(tagged bool) {
	dropped := len(m.discarded) > 0 && !tagged
	if dropped && len(m.accepted) == 0 {
		m.count(smtpfilter.OutcomeDiscarded)
	} else {
		m.count(smtpfilter.OutcomeAccepted)
		m.logAccepted()
	}
	if dropped {
		m.logDiscarded()
	}
}
