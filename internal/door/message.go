package door

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/header"
	"spamgate/smtpfilter/wire"
)

// Message is one message at a door. One goroutine at a time may use it.
type Message struct {
	door     *Door
	settings *Settings
	ctx      context.Context

	id       string
	began    time.Time
	envelope Envelope
	exempt   string          // why it is not judged: "client", "authenticated"
	judge    verdict.Judge   // nil for an exempt client
	facts    verdict.Message // for the judge
	finding  verdict.Finding // about the reverse-path
	findings []verdict.Finding

	accepted  []recipient
	discarded []string // paths
	messageID string

	logged  bool // a refusal, see Config.Once
	counted bool // by the Meter
}

// recipient is a recipient that was not refused.
type recipient struct {
	path   string
	exempt bool
}

// Answer says what should become of a recipient or a message.
type Answer struct {
	// Reply is the refusal. The zero Reply lets the mail pass, as Action says.
	Reply wire.Reply

	Action verdict.Action // Accept, Tag, Discard, Defer or Reject

	// Tags are the contents of the fields that mark the message, see
	// [smtpfilter.TagField].
	Tags []string

	// DiscardTag marks a message that should be discarded, for a door that cannot do
	// that. It is "" with other actions.
	DiscardTag string
}

// ID returns the id of the message in replies and in the log.
func (m *Message) ID() string { return m.id }

// SetQueueID sets the mail server's id, if it is known only after Begin.
func (m *Message) SetQueueID(id string) { m.envelope.QueueID = id }

// Finding returns the finding about the reverse-path.
func (m *Message) Finding() verdict.Finding { return m.finding }

// misread reports whether the reverse-path is not an address. The lists cannot be asked
// about it, so that it is refused.
func (m *Message) misread() bool { return m.finding.Err != nil && !m.finding.NoAnswer() }

// Recipient judges the message for a recipient, whose path is without brackets. Postmaster
// and the policy's exempt recipients are reachable by every sender.
func (m *Message) Recipient(path string) Answer {
	parsed := verdict.ParseRecipient(path)
	exempt := m.settings.Policy.ExemptRecipient(parsed)
	a := m.answer(exempt)
	outcome := smtpfilter.RecipientAccepted
	switch {
	case !a.Reply.IsZero():
		m.logRefusal(m.finding, a, []string{path})
		outcome = smtpfilter.RecipientListed
		if m.finding.NoAnswer() {
			outcome = smtpfilter.RecipientFailed
		}
	case a.Action == verdict.Discard && !m.door.cfg.Once:
		outcome = smtpfilter.RecipientDiscarded
		fallthrough
	default:
		m.keep(parsed, exempt, a.Action)
	}
	m.door.cfg.Meter.Recipient(m.door.cfg.Name, outcome)
	return a
}

// keep keeps a recipient that was not refused. If the log has one line for all recipients,
// the first is enough.
func (m *Message) keep(rcpt verdict.Recipient, exempt bool, action verdict.Action) {
	if m.door.cfg.Once && len(m.accepted)+len(m.discarded) > 0 {
		return
	}
	if action == verdict.Discard {
		m.discarded = append(m.discarded, rcpt.Path)
	} else {
		m.accepted = append(m.accepted, recipient{rcpt.Path, exempt})
	}
	m.facts.Recipients = append(m.facts.Recipients, rcpt)
}

// AnyRecipient judges the message for recipients that are not known. Some of them may be
// reachable by every sender, so that the answer is the one for these.
func (m *Message) AnyRecipient() Answer { return m.answer(true) }

// answer returns the answer because of the reverse-path, to recipients that are exempt or
// not.
func (m *Message) answer(exempt bool) Answer {
	if m.misread() && !exempt {
		return Answer{Reply: wire.NewReply(553, "5.1.7 Sender address not understood; id "+m.id), Action: verdict.Reject}
	}
	return m.answerTo(verdict.Decide([]verdict.Finding{m.finding}, exempt))
}

// answerTo returns the answer because of the finding that decides.
func (m *Message) answerTo(f verdict.Finding) Answer {
	a := Answer{Reply: m.settings.Policy.Refusal(f, m.id), Action: f.Verdict.Action}
	if a.Reply.IsZero() {
		a.Tags = smtpfilter.Tags(m.finding, m.findings)
	}
	if a.Action == verdict.Discard {
		a.DiscardTag = smtpfilter.TagOf(f)
	}
	return a
}

// onlyExempt reports whether every recipient is reachable by every sender.
func (m *Message) onlyExempt() bool {
	return len(m.discarded) == 0 && !slices.ContainsFunc(m.accepted, func(r recipient) bool { return !r.exempt })
}

// Header judges the header section: lines with CRLF or LF, without the empty line at the end.
// The names are those of the mail server, which may complete addresses with them. An Answer
// with Discard concerns the recipients that Discarded returns then.
func (m *Message) Header(section []byte, names []string) Answer {
	policy := &m.settings.Policy
	section = bytes.TrimSuffix(section, []byte("\r\n"))
	if m.judge == nil || m.misread() || !policy.JudgesHeader(m.finding) {
		m.messageID = header.Senders(section, nil).MessageID
		return m.headerAnswer()
	}
	senders := policy.ReadHeader(section, names)
	m.messageID = senders.MessageID
	var summary smtpfilter.HeaderFindings
	for f := range policy.JudgeHeader(m.ctx, m.judge, &m.facts, senders, verdict.For{}) {
		summary.Add(f)
	}
	if senders.TooMany() {
		if m.onlyExempt() {
			return m.headerAnswer()
		}
		return m.refuse(wire.NewReply(554, fmt.Sprintf("5.6.0 Too many or too complex sender addresses in the header (limit %d); id %s",
			policy.AddressLimit(), m.id)), smtpfilter.ErrTooManyAddresses)
	}
	for _, field := range senders.FieldsWithoutAddress() {
		m.log(slog.LevelInfo, "header field without an address", verdict.Finding{Identity: field}, nil, verdict.Accept.String(), wire.Reply{})
	}
	m.findings = summary.Deciding
	m.logUnreadable(summary)
	m.logMonitored(summary.Monitored)
	return m.headerAnswer()
}

// HeaderLimit returns how long the header section may be, in bytes.
func (m *Message) HeaderLimit() int { return m.settings.Policy.HeaderLimit() }

// HeaderTooLarge refuses a message because of its header section, which is too long to be
// judged.
func (m *Message) HeaderTooLarge() Answer {
	return m.refuse(wire.NewReply(552, fmt.Sprintf("5.3.4 Header section larger than %d bytes", m.HeaderLimit())), wire.ErrHeaderTooLarge)
}

// refuse refuses, logs and counts a message that cannot be judged.
func (m *Message) refuse(reply wire.Reply, why error) Answer {
	a := Answer{Action: verdict.Reject, Reply: reply}
	m.count(smtpfilter.OutcomeRefused)
	m.log(slog.LevelInfo, "message refused", verdict.Finding{}, m.paths(), a.Action.String(), a.Reply, slog.String("error", why.Error()))
	return a
}

// headerAnswer returns the answer because of the findings in the header, and beside it the
// discarded recipients.
func (m *Message) headerAnswer() Answer {
	worst := verdict.Decide(m.findings, m.onlyExempt())
	a := m.answerTo(worst)
	switch a.Action {
	case verdict.Reject, verdict.Defer:
		m.logRefusal(worst, a, m.paths())
		m.count(outcomeOf(worst))
		return a
	case verdict.Discard:
		m.discardRest()
	}
	if len(m.discarded) > 0 && a.Action != verdict.Discard {
		a = m.answerTo(m.finding)
	}
	return a
}

// discardRest discards the message for the recipients that are not exempt.
func (m *Message) discardRest() {
	m.accepted = slices.DeleteFunc(m.accepted, func(r recipient) bool {
		if !r.exempt {
			m.discarded = append(m.discarded, r.path)
		}
		return !r.exempt
	})
}

// Discarded returns the recipients for which the message is discarded, and whether that is
// all of them.
func (m *Message) Discarded() (paths []string, all bool) {
	return m.discarded, len(m.accepted) == 0
}

// paths returns the recipients that were not refused.
func (m *Message) paths() []string {
	var paths []string
	for _, r := range m.accepted {
		paths = append(paths, r.path)
	}
	return append(paths, m.discarded...)
}

// Passed logs and counts a message that the mail server may have. Tagged says that discarded
// recipients get it too, with a tag, since the protocol cannot discard it.
func (m *Message) Passed(tagged bool) {
	f := verdict.Strictest(append([]verdict.Finding{m.finding}, m.findings...))
	dropped := len(m.discarded) > 0 && !tagged
	if dropped && len(m.accepted) == 0 {
		m.count(smtpfilter.OutcomeDiscarded)
	} else {
		m.count(smtpfilter.OutcomeAccepted)
		m.logAccepted(f, tagged)
	}
	if dropped {
		m.log(slog.LevelWarn, "discarded", f, m.discarded, verdict.Discard.String(), wire.Reply{})
	}
}

// logAccepted logs a message that a recipient gets.
func (m *Message) logAccepted(f verdict.Finding, tagged bool) {
	action, exempt := f.Verdict.Action, m.exempt
	switch {
	case action == verdict.Discard && tagged && len(m.discarded) > 0:
		action = verdict.Tag
	case action > verdict.Tag && len(m.accepted) == 0:
		action, exempt = verdict.Accept, "no_recipient" // the sender is listed, and nobody was named who is not exempt
	case action > verdict.Tag:
		action, exempt = verdict.Accept, "recipient" // the sender is listed, but every recipient is exempt
	}
	m.log(slog.LevelInfo, "accepted", f, m.paths(), action.String(), wire.Reply{}, slog.String("exempt", exempt))
}

// Abandoned counts a message that was not sent to its end.
func (m *Message) Abandoned() {
	if len(m.accepted)+len(m.discarded) > 0 {
		m.count(smtpfilter.OutcomeAbandoned)
	}
}

// count counts what became of the message, once.
func (m *Message) count(o smtpfilter.Outcome) {
	if !m.counted {
		m.counted = true
		m.door.cfg.Meter.Message(m.door.cfg.Name, o)
	}
}
