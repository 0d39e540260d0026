package smtpfilter

import (
	"bytes"
	"errors"
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
	fault := policy.Loop(section)
	if fault == nil {
		fault = s.judgeHeader(t, unstuffed(body, section))
	}
	if fault != nil {
		return s.refuseHeader(t, body, fault)
	}

	t.classes.conclude(&t.decided, t.used(t.accepted, t.discarded))
	if t.decided.Pending && t.settings.Signatures == nil {
		s.finish(t, nil) // none is valid
	}
	refused := t.decided.Refuses() && !t.decided.Pending
	var reply wire.Reply
	if !refused {
		reply = s.dropDiscarded(t)
	}
	if refused || !reply.IsZero() || len(t.accepted) == 0 {
		if err := body.Discard(); err != nil {
			return s.refuseBytes(t, body, err)
		}
		switch {
		case refused:
			return s.refuseSender(t, &t.decided)
		case !reply.IsZero():
			return reply
		}
		return s.discarded(t)
	}
	reply = s.deliver(t, body, section)
	if reply.Positive() && t.outcome != OutcomeDiscarded {
		s.logDiscarded(t)
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
// returns the fault of a header that cannot be judged, unless every recipient is exempt.
func (s *session) judgeHeader(t *transaction, section []byte) *HeaderFault {
	policy, classes := &t.settings.Policy, t.used(t.accepted, t.discarded)
	section = bytes.TrimSuffix(section, []byte("\r\n"))
	t.classes.ReadSignatures(s.server.ctx, section, classes)
	if !t.classes.JudgesHeader(classes) {
		t.messageID = header.Senders(section, nil).MessageID
		return nil
	}
	senders := policy.ReadHeader(section, greetingNames(t.settings.NextHop))
	t.messageID = senders.MessageID
	var summary HeaderFindings
	t.classes.judgeSenders(s.server.ctx, senders, classes, &summary)
	if fault := senders.Fault(); fault != nil && !t.onlyExempt() {
		return fault
	}
	for _, field := range senders.FieldsWithoutAddress() {
		s.log(t, &verdict.Finding{Identity: field}, nil, wire.Reply{}, &verdict.Decision{Event: "header field without an address"})
	}
	s.logUnreadable(t, &summary)
	s.logMonitored(t, summary.Monitored)
	return nil
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

// refuseSender refuses a received message because of a sender. If that holds for some
// recipients only, the reply names them.
func (s *session) refuseSender(t *transaction, c *Conclusion) wire.Reply {
	policy, f := &t.settings.Policy, &c.Finding
	reply := policy.refusal(f, t.id, "")
	var refused []wire.Path
	if c.Mixed {
		refused = t.refusing()
		reply = policy.refusalForSome(f, t.id, texts(refused))
	}
	s.logRefusal(t, f, t.recipients(), reply, refused)
	t.next.Abort() // its connection serves others while the tarpit delays this client
	s.tarpit(t, f)
	return reply
}

// dropDiscarded discards the message for the recipients whose lists say so. The next hop has
// accepted them already, so dropDiscarded begins a new transaction for the others. A reply
// that is not zero is the client's: the next hop now refuses one of them.
func (s *session) dropDiscarded(t *transaction) wire.Reply {
	dropped := func(r recipient) bool { return r.class.Dropped() }
	if !slices.ContainsFunc(t.accepted, dropped) {
		return wire.Reply{}
	}
	var kept []recipient
	for _, r := range t.accepted {
		if dropped(r) {
			t.discarded = append(t.discarded, r)
		} else {
			kept = append(kept, r)
		}
	}
	t.accepted = kept
	t.next.Abort()
	if len(kept) == 0 {
		return wire.Reply{}
	}
	t.classes.conclude(&t.decided, t.used(kept, t.discarded))
	t.next = s.begin(t)
	for i := range kept {
		if reply, outcome := s.askRcpt(t, &kept[i]); outcome != RecipientAccepted {
			return reply
		}
	}
	return wire.Reply{}
}

// discarded returns the reply to a message that the gate drops.
func (s *session) discarded(t *transaction) wire.Reply {
	t.outcome = OutcomeDiscarded
	s.logDiscarded(t)
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
func (s *session) refuseHeader(t *transaction, body *wire.Body, fault *HeaderFault) wire.Reply {
	if err := body.Discard(); err != nil {
		return s.refuseBytes(t, body, err)
	}
	reply := fault.Reply(t.id)
	t.outcome = OutcomeRefused
	s.logBytesRefused(t, body.Size(), reply, fault.Err)
	return reply
}

// refuseBytes returns the reply to a message that cannot be passed on because of how it was
// sent. The connection ends after the reply, unless the client did reach the end of the
// message.
func (s *session) refuseBytes(t *transaction, body *wire.Body, cause error) wire.Reply {
	body.Discard()
	reply := t.settings.Policy.RefusalOfBytes(cause, s.conn.MaxMessageBytes(), t.id)
	t.outcome = OutcomeRefused
	switch {
	case !reply.IsZero():
	case errors.Is(cause, wire.ErrReset):
		t.outcome = OutcomeAbandoned
		s.log(t, &noFinding, t.recipients(), wire.Reply{}, &verdict.Decision{Event: "given up by the client", Size: body.Size(), Sized: true})
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
