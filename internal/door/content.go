package door

import (
	"bytes"
	"io"
	"slices"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/wire"
)

// Header judges the header section: lines with CRLF or LF, without the empty line at the end,
// which must not change before End. The names are those of the mail server, which may complete
// addresses with them.
func (m *Message) Header(section []byte, names []string) {
	m.section = section
	var found smtpfilter.HeaderFindings
	m.judged.Header(section, func() []string { return names }, &found)
	m.messageID, m.fault = found.MessageID, found.Fault
	if m.fault != nil {
		return
	}
	for _, field := range found.Empty {
		m.log(&verdict.Finding{Identity: field}, nil, wire.Reply{}, &verdict.Decision{Event: "header field without an address"})
	}
	m.logUnreadable(found)
	m.logMonitored(found.Monitored)
}

// Content returns what takes the body, after the header. It is nil if nothing depends on the
// body.
func (m *Message) Content() io.Writer {
	if m.settings.Signatures == nil || m.fault != nil || !m.judged.Decide().Pending {
		return nil
	}
	domains := m.judged.Awaited()
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
		m.judged.Finish(m.verification.Finish())
	}
	c := m.judged.Decide()
	if c.Pending {
		m.judged.AssumeProved(m.judged.Used()...)
		c = m.judged.Decide()
	}
	m.observe(m.judged.Used()...)
	if c.Refuses() {
		return m.refuseSender(c)
	}
	if i := slices.IndexFunc(m.taken, func(r recipient) bool { return r.class.Dropped }); i >= 0 {
		return Answer{Action: verdict.Discard, DiscardTag: smtpfilter.TagOf(&m.taken[i].class.Decides().Verdict), Tags: c.Tags}
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
	f := c.Finding
	var refused []string
	if c.Mixed {
		refused = append([]string{}, m.pathsThat(m.judged.Refusing())...)
	}
	a := Answer{Reply: m.judged.Policy.Refusal(f, m.id, refused...), NoAnswer: f.NoAnswer(), Action: f.Verdict.Action}
	m.logRefusal(f, a, m.paths(), refused)
	m.count(outcomeOf(f))
	return a
}

// Passed logs and counts a message that the mail server may have. Tagged says that discarded
// recipients get it too, with a tag, since the protocol cannot discard it.
func (m *Message) Passed(tagged bool) {
	paths, all := m.Discarded()
	dropped := len(paths) > 0 && !tagged
	if dropped && all {
		m.count(smtpfilter.OutcomeDiscarded)
	} else {
		m.count(smtpfilter.OutcomeAccepted)
		m.logAccepted()
	}
	if dropped {
		m.logDiscarded()
	}
}
