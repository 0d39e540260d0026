package door

import (
	"context"
	"time"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
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
	judged   smtpfilter.Judgement

	taken     []recipient // those that were not refused
	messageID string

	section      []byte                  // the header
	fault        *smtpfilter.HeaderFault // of the header
	verification smtpfilter.Verification

	logged   []string // refusals, see Config.Once
	counted  bool     // by the Meter
	recorded bool     // by the History, a decision at least
}

// recipient is a recipient that was not refused.
type recipient struct {
	path  string
	class *smtpfilter.Class
}

// Answer says what should become of a recipient or a message.
type Answer struct {
	// Reply is the refusal. The zero Reply lets the mail pass, as Action says.
	Reply wire.Reply

	// NoAnswer says that Reply refuses because the lists could not be asked.
	NoAnswer bool

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

// Recipient judges the message for a recipient, whose path is without brackets. Postmaster
// and the policy's exempt recipients are reachable by every sender.
func (m *Message) Recipient(path string) Answer { return m.RecipientAs(path, "") }

// RecipientAs is Recipient for a mail server that also tells how it has rewritten the path. That
// counts if the path is not an address, or may be one of another recipient, see
// [smtpfilter.Ambiguous]. The rewritten path is "" if it is not known.
func (m *Message) RecipientAs(path, rewritten string) Answer {
	rcpt := verdict.ParseRecipient(path)
	if rewritten != "" && rcpt.Local != "postmaster" {
		_, err := sender.Parse(path)
		if r := verdict.ParseRecipient(rewritten); r.Domain != "" && (err != nil || smtpfilter.Ambiguous(rcpt)) {
			rcpt = r
		}
	}
	class := m.classOf(rcpt)
	m.observe(class)
	a := m.answer(class)
	outcome := smtpfilter.RecipientAccepted
	switch {
	case a.Reply.IsZero() && m.judged.Full(class):
		// RFC 5321, section 4.5.3.1.10: the client tries the others again.
		return Answer{Reply: wire.NewReply(452, "4.5.3 Too many recipients with lists of their own; id "+m.id), Action: verdict.Defer}
	case !a.Reply.IsZero():
		if m.firstRefusal(a.Reply) {
			m.logRefusal(&class.Envelope, a, []string{path}, nil)
		}
		if m.door.cfg.Once {
			m.count(outcomeOf(&class.Envelope))
		}
		outcome = smtpfilter.RecipientListed
		if a.NoAnswer {
			outcome = smtpfilter.RecipientFailed
		}
	case a.Action.Drops() && !m.door.cfg.Once:
		outcome = smtpfilter.RecipientDiscarded
		fallthrough
	default:
		m.keep(path, rcpt, class)
	}
	m.door.cfg.Meter.Recipient(m.door.cfg.Name, outcome)
	return a
}

// maxRemembered bounds the classes of a message that is remembered, as thousands of messages may
// be: the recipients may be chosen by who sends them.
const maxRemembered = 10

// classOf returns the class of a recipient. See Config.Once for who judges it.
func (m *Message) classOf(rcpt verdict.Recipient) *smtpfilter.Class {
	if !m.door.cfg.Once || m.judged.Judge == nil {
		return m.judged.Recipient(rcpt)
	}
	m.judged.Judge = m.settings.Checker.Judge()
	defer m.dismiss()
	m.judged.Forget(maxRemembered)
	class := m.judged.Recipient(rcpt)
	m.judged.AssumeProved(class)
	return class
}

// keep keeps a recipient that was not refused. If the log has one line for all recipients,
// the first is enough.
func (m *Message) keep(path string, rcpt verdict.Recipient, class *smtpfilter.Class) {
	if m.door.cfg.Once && len(m.taken) > 0 {
		return
	}
	m.taken = append(m.taken, recipient{path, class})
	m.judged.Take(rcpt, class)
}

// AnyRecipient judges the message for recipients that are not known. Some of them may be
// reachable by every sender, so that the answer is the one for these.
func (m *Message) AnyRecipient() Answer {
	m.observe(m.judged.Plain())
	return m.answer(&smtpfilter.Class{Exempt: true, Envelope: m.judged.Plain().Envelope})
}

// answer returns the answer because of the reverse-path, to recipients of a class.
func (m *Message) answer(class *smtpfilter.Class) Answer {
	if m.judged.Misread() != nil && !class.Exempt {
		return Answer{Reply: wire.NewReply(553, "5.1.7 Sender address not understood; id "+m.id), Action: verdict.Reject}
	}
	return NewAnswer(m.judged.Policy, class.AtRCPT(), m.id)
}

// NewAnswer returns the answer because of one finding.
func NewAnswer(p *smtpfilter.Policy, f *verdict.Finding, id string) Answer {
	a := Answer{Reply: p.Refusal(f, id), NoAnswer: f.NoAnswer(), Action: f.Verdict.Action}
	if a.Reply.IsZero() {
		a.Tags = smtpfilter.Tags(&f.Verdict)
	}
	if a.Action.Drops() {
		a.DiscardTag = smtpfilter.TagOf(&f.Verdict)
	}
	return a
}

// HeaderLimit returns how long the header section may be, in bytes.
func (m *Message) HeaderLimit() int { return m.settings.Policy.HeaderLimit() }

// HeaderTooLarge refuses a message because of its header section, which is too long to be
// judged.
func (m *Message) HeaderTooLarge() Answer {
	return m.refuse(m.settings.Policy.RefusalOfBytes(wire.ErrHeaderTooLarge, 0, m.id), wire.ErrHeaderTooLarge)
}

// refuse refuses, logs and counts a message that cannot be judged.
func (m *Message) refuse(reply wire.Reply, why error) Answer {
	a := Answer{Action: verdict.Reject, Reply: reply}
	m.count(smtpfilter.OutcomeRefused)
	m.log(&verdict.Finding{}, m.paths(), a.Reply, &verdict.Decision{Event: "message refused", Action: a.Action.String(), Error: why.Error()})
	return a
}

// Discarded returns the recipients for which the message is discarded, and whether that is
// all of them.
func (m *Message) Discarded() (paths []string, all bool) {
	paths = m.pathsThat(isDropped)
	return paths, len(paths) == len(m.taken)
}

func isDropped(class *smtpfilter.Class) bool { return class.Dropped }

// pathsThat returns the recipients whose class is one of some.
func (m *Message) pathsThat(is func(*smtpfilter.Class) bool) (paths []string) {
	for _, r := range m.taken {
		if is(r.class) {
			paths = append(paths, r.path)
		}
	}
	return paths
}

// paths returns the recipients that were not refused, those last for whom the message is dropped.
func (m *Message) paths() []string {
	return append(m.pathsThat(func(class *smtpfilter.Class) bool { return !class.Dropped }), m.pathsThat(isDropped)...)
}

// Abandoned counts a message that was not sent to its end, and stops its verification.
func (m *Message) Abandoned() {
	if m.verification != nil {
		m.verification.Abort()
	}
	if len(m.taken) > 0 {
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
