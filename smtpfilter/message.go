package smtpfilter

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// receive receives the message from the client, judges its header, passes it on, and
// returns the client's reply.
func (s *session) receive(t *transaction) wire.Reply {
	body := s.conn.Body()
	section, err := body.Header(t.Policy.HeaderLimit())
	if err != nil {
		return s.refuseBytes(t, body, err)
	}
	fault := t.Policy.Loop(section)
	if fault == nil {
		fault = s.judgeHeader(t, unstuffed(body, section))
	}
	if fault != nil {
		return s.refuseHeader(t, body, fault)
	}

	if t.Decide().Pending && t.settings.Signatures == nil {
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
			return s.refuseSender(t)
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
	var found HeaderFindings
	t.Header(section, func() []string { return greetingNames(t.settings.NextHop) }, &found)
	t.messageID = found.MessageID
	if found.Fault != nil {
		return found.Fault
	}
	for _, field := range found.Empty {
		s.log(t, &verdict.Finding{Identity: field}, nil, wire.Reply{}, &verdict.Decision{Event: "header field without an address"})
	}
	s.logUnreadable(t, &found)
	s.logMonitored(t, found.Monitored)
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
func (s *session) refuseSender(t *transaction) wire.Reply {
	f := t.decided.Finding
	var refused []wire.Path
	if t.decided.Mixed {
		refused = t.refusing()
	}
	reply := t.Policy.Refusal(f, t.id, texts(refused)...)
	s.logRefusal(t, f, t.recipients(), reply, refused)
	t.next.Abort() // its connection serves others while the tarpit delays this client
	s.tarpit(t, f)
	return reply
}

// dropDiscarded discards the message for the recipients whose lists say so. The next hop has
// accepted them already, so dropDiscarded begins a new transaction for the others. A reply
// that is not zero is the client's: the next hop now refuses one of them.
func (s *session) dropDiscarded(t *transaction) wire.Reply {
	accepted := len(t.accepted)
	if t.drop(); len(t.accepted) == accepted {
		return wire.Reply{}
	}
	t.next.Abort()
	if len(t.accepted) == 0 {
		return wire.Reply{}
	}
	t.next = s.begin(t)
	for i := range t.accepted {
		if reply, outcome := s.askRcpt(t, &t.accepted[i]); outcome != RecipientAccepted {
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

// format returns the format in which the next hop receives the message.
func format(body *wire.Body) nexthop.Format {
	switch {
	case body.Stuffed():
		return nexthop.Stuffed
	case body.Binary():
		return nexthop.Binary
	default:
		return nexthop.Raw
	}
}

// flushEvery bounds how long a slow client's message is buffered, so that the next hop does
// not time out. Together with DataTimeout it is less than the 5 minutes that servers wait.
const flushEvery = 20 * time.Second

// deliver passes the message on and returns the client's reply.
func (s *session) deliver(t *transaction, body *wire.Body, section []byte) wire.Reply {
	msg, reply, err := s.open(t, body, section)
	if err != nil {
		return s.nextHopFailed(t, body, err)
	}
	if msg == nil {
		if err := body.Discard(); err != nil {
			return s.refuseBytes(t, body, err)
		}
		s.logOutcome(t, body.Size(), reply)
		return reply
	}
	verification := s.verify(t, body, section)
	defer verification.abort()
	// The end of Shutdown's time interrupts a wait for a next hop that does not read.
	// Nothing interrupts Commit.
	defer context.AfterFunc(s.server.ctx, msg.Abort)()
	if _, err := msg.Write(s.trace(t, section, body.Stuffed())); err != nil {
		msg.Abort()
		return s.nextHopFailed(t, body, err)
	}
	flushed := time.Now()
	for piece := section; ; {
		_, err := msg.Write(piece)
		if err == nil && !body.Ready() && time.Since(flushed) > flushEvery {
			err = msg.Flush()
			flushed = time.Now()
		}
		if err != nil {
			msg.Abort()
			return s.nextHopFailed(t, body, err)
		}
		if piece, err = body.Next(); err == io.EOF {
			break
		}
		if err != nil {
			msg.Abort()
			return s.refuseBytes(t, body, err)
		}
		if t.digest != nil {
			t.digest.Write(piece)
		}
		verification.write(piece)
	}
	if reply := s.judgeWhole(t, verification); !reply.IsZero() {
		msg.Abort()
		return reply
	}
	if reply := s.checkDuplicate(t, body.Size()); !reply.IsZero() {
		msg.Abort()
		return reply
	}
	reply, each, err := commit(s.server.ctx, msg)
	if err != nil && !errors.Is(err, nexthop.ErrReplyLost) {
		return s.nextHopFailed(t, body, err)
	}
	return s.conclude(t, body.Size(), reply, each, err)
}

// trace returns the fields that the gate adds before the message: at most maxTags tag
// fields, and the Received field.
func (s *session) trace(t *transaction, section []byte, stuffed bool) []byte {
	var b []byte
	t.tags = t.Ahead()
	for _, tag := range t.tags {
		b = append(b, TagField+": "+tag+"\r\n"...)
	}
	b = append(b, receivedField(t.client.Helo, t.client.Addr.Addr(), s.server.cfg.Hostname, s.protocol(t), t.id, time.Now())...)
	if stuffed {
		section = bytes.TrimPrefix(section, []byte("."))
	}
	if len(section) > 0 && (section[0] == ' ' || section[0] == '\t') {
		b = append(b, continuationField...)
	}
	return b
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
	reply := t.Policy.RefusalOfBytes(cause, s.conn.MaxMessageBytes(), t.id)
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
