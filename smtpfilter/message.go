package smtpfilter

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/header"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// receive receives the message from the client, judges its header, passes it on, and
// returns the client's reply.
func (s *session) receive(t *transaction) wire.Reply {
	body := s.conn.Body()
	policy := &t.settings.Policy
	section, err := body.Header(policy.HeaderLimit())
	if err != nil {
		return s.refuseBytes(t, body, err)
	}
	if hops := countReceived(section); hops > policy.maxHops() {
		// RFC 5321, section 6.3; RFC 3463: X.4.6, routing loop detected.
		return s.refuseHeader(t, body, errTooManyHops, fmt.Sprintf("5.4.6 Too many hops (%d Received fields)", hops))
	}
	if !s.judgeHeader(t, unstuffed(body, section)) {
		// RFC 3463: X.6.0, other or undefined media error.
		return s.refuseHeader(t, body, ErrTooManyAddresses,
			fmt.Sprintf("5.6.0 Too many or too complex sender addresses in the header (limit %d)", policy.AddressLimit()))
	}

	worst := verdict.Decide(t.findings, t.onlyExempt())
	switch worst.Verdict.Action {
	case verdict.Reject, verdict.Defer:
		if err := body.Discard(); err != nil {
			return s.refuseBytes(t, body, err)
		}
		return s.refuseSender(t, worst)
	case verdict.Discard:
		if reply := s.keepExempt(t); !reply.IsZero() {
			if err := body.Discard(); err != nil {
				return s.refuseBytes(t, body, err)
			}
			return reply
		}
	}
	if len(t.accepted) == 0 {
		return s.discard(t, body, worst)
	}
	reply := s.deliver(t, body, section)
	if len(t.discarded) > 0 && reply.Positive() {
		s.logDiscarded(t, t.discarder(worst), t.discarded)
	}
	return reply
}

// unstuffed returns a header section without dot-stuffing.
func unstuffed(body *wire.Body, section []byte) []byte {
	if body.Stuffed() {
		return wire.Unstuff(section)
	}
	return section
}

// judgeHeader reads a header section, and judges its senders if the policy says so. It
// reports false if there are too many of them, unless every recipient is exempt.
func (s *session) judgeHeader(t *transaction, section []byte) bool {
	policy := &t.settings.Policy
	section = bytes.TrimSuffix(section, []byte("\r\n"))
	if t.judge == nil || !policy.JudgesHeader(t.envelope) {
		t.messageID = header.Senders(section, nil).MessageID
		return true
	}
	senders := policy.ReadHeader(section, greetingNames(t.settings.NextHop))
	t.messageID = senders.MessageID
	var summary HeaderFindings
	for f := range policy.JudgeHeader(s.server.ctx, t.judge, &t.message, senders, verdict.For{}) {
		summary.Add(f)
	}
	if senders.TooMany() {
		return t.onlyExempt()
	}
	for _, field := range senders.FieldsWithoutAddress() {
		s.log(slog.LevelInfo, "header field without an address", t, verdict.Finding{Identity: field}, nil, verdict.Accept.String(), wire.Reply{})
	}
	t.findings = summary.Deciding
	s.logUnreadable(t, summary)
	s.logMonitored(t, summary.Monitored)
	return true
}

// greetingNames returns the names in the greetings of a next hop's servers.
func greetingNames(next nexthop.Target) []string {
	var names []string
	for _, text := range nexthop.Greetings(next) {
		if name := nexthop.GreetingName(text); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// refuseSender refuses a received message because of a finding.
func (s *session) refuseSender(t *transaction, f verdict.Finding) wire.Reply {
	action := f.Verdict.Action
	reply := t.settings.Policy.Refusal(f, t.id)
	s.logRefusal(t, f, t.recipients(), action, reply)
	t.next.Abort() // its connection serves others while the tarpit delays this client
	s.tarpit(t, f)
	return reply
}

// judgeBody asks the judge once more if the envelope's verdict is pending until the message
// has been received. A reply that is not zero is the client's: the message must not be
// delivered. A message cannot be tagged any more, and it is discarded only if no recipient
// is exempt.
func (s *session) judgeBody(t *transaction) wire.Reply {
	if !t.envelope.Verdict.Pending {
		return wire.Reply{}
	}
	t.message.BodyKnown = true
	if f := t.settings.Policy.JudgeEnvelope(s.server.ctx, t.judge, &t.message, verdict.For{}); f.Err == nil || f.NoAnswer() {
		t.envelope = f
	}
	s.logMonitored(t, []verdict.Finding{t.envelope})
	f := verdict.Decide([]verdict.Finding{t.envelope}, t.onlyExempt())
	switch f.Verdict.Action {
	case verdict.Reject, verdict.Defer:
		return s.refuseSender(t, f)
	case verdict.Discard:
		if !slices.ContainsFunc(t.accepted, func(r recipient) bool { return r.exempt }) {
			return s.discarded(t, f, t.recipients())
		}
	}
	return wire.Reply{}
}

// keepExempt discards the message for the recipients that are not exempt. The next hop has
// accepted them already, so keepExempt begins a new transaction for the others. A reply
// that is not zero is the client's: the next hop now refuses one of them.
func (s *session) keepExempt(t *transaction) wire.Reply {
	kept := t.accepted[:0:0]
	for _, r := range t.accepted {
		if r.exempt {
			kept = append(kept, r)
		} else {
			t.discarded = append(t.discarded, r.path)
		}
	}
	if len(kept) == len(t.accepted) {
		return wire.Reply{}
	}
	t.accepted = kept
	t.next.Abort()
	if len(kept) == 0 {
		return wire.Reply{}
	}
	t.next = s.begin(t)
	for i := range kept {
		if reply, outcome := s.askRcpt(t, &kept[i]); outcome != RecipientAccepted {
			return reply
		}
	}
	return wire.Reply{}
}

// discard receives the message and drops it.
func (s *session) discard(t *transaction, body *wire.Body, worst verdict.Finding) wire.Reply {
	if err := body.Discard(); err != nil {
		return s.refuseBytes(t, body, err)
	}
	if reply := s.judgeBody(t); !reply.IsZero() {
		return reply
	}
	return s.discarded(t, t.discarder(worst), t.discarded)
}

// discarded returns the reply to a message that the gate drops.
func (s *session) discarded(t *transaction, f verdict.Finding, to []wire.Path) wire.Reply {
	t.outcome = OutcomeDiscarded
	s.logDiscarded(t, f, to)
	return wire.NewReply(250, "2.0.0 Ok: id "+t.id)
}

// nextHopFailed receives the rest of the message, and returns the reply that asks the client
// to try again, or the reply with which the next hop broke off.
func (s *session) nextHopFailed(t *transaction, body *wire.Body, cause error) wire.Reply {
	reply := s.unavailable(t, cause)
	var refused *nexthop.ReplyError
	if errors.As(cause, &refused) && !refused.Reply.Positive() && checkReply(refused.Reply) == nil {
		reply = refused.Reply
	}
	s.logNextHopFailure(t, t.recipients(), reply, cause)
	if err := body.Discard(); err != nil {
		return s.refuseBytes(t, body, err)
	}
	return reply
}

// refuseHeader receives the rest of the message, and refuses it because of its header.
func (s *session) refuseHeader(t *transaction, body *wire.Body, cause error, text string) wire.Reply {
	if err := body.Discard(); err != nil {
		return s.refuseBytes(t, body, err)
	}
	reply := wire.NewReply(554, text+"; id "+t.id)
	t.outcome = OutcomeRefused
	s.logBytesRefused(t, body.Size(), reply, cause)
	return reply
}

// refuseBytes returns the reply to a message that cannot be passed on because of how it was
// sent. The connection ends after the reply, unless the client did reach the end of the
// message.
func (s *session) refuseBytes(t *transaction, body *wire.Body, cause error) wire.Reply {
	body.Discard()
	var reply wire.Reply
	t.outcome = OutcomeRefused
	switch limit := s.conn.MaxMessageBytes(); {
	case errors.Is(cause, wire.ErrBareNewline), errors.Is(cause, wire.ErrNUL):
		reply = wire.NewReply(550, fmt.Sprintf("5.5.2 Refused: %v; id %s", cause, t.id))
	case errors.Is(cause, wire.ErrTooLarge):
		reply = tooLarge(limit)
	case errors.Is(cause, wire.ErrHeaderTooLarge):
		reply = wire.NewReply(552, fmt.Sprintf("5.3.4 Header section larger than %d bytes", t.settings.Policy.HeaderLimit()))
	case errors.Is(cause, wire.ErrReset):
		t.outcome = OutcomeAbandoned
		s.log(slog.LevelInfo, "given up by the client", t, verdict.Finding{}, t.recipients(), "", wire.Reply{}, slog.Int64("size", body.Size()))
		return wire.NewReply(250, "2.0.0 Ok") // which the client does not receive
	case wire.Interrupted(cause):
		t.outcome = OutcomeFailed
		reply = wire.NewReply(421, "4.3.2 The gate is shutting down, try again later")
	case wire.TimedOut(cause):
		t.outcome = OutcomeAbandoned
		reply = wire.NewReply(421, "4.4.2 Waited too long for the message")
	default:
		t.outcome = OutcomeAbandoned
		reply = wire.NewReply(421, "4.4.2 Connection lost")
	}
	s.logBytesRefused(t, body.Size(), reply, cause)
	return reply
}
