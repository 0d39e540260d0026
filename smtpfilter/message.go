package smtpfilter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/header"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/partial"
	"spamgate/smtpfilter/wire"
)

// receive takes the message of t from the client, judges its header, passes it
// on, and returns the client's reply.
func (s *session) receive(t *transaction) wire.Reply {
	body := s.conn.Body()
	policy := &t.settings.Policy
	section, err := body.Header(policy.HeaderLimit())
	if err != nil {
		return s.refuseBytes(t, body, err)
	}
	if hops := countReceived(section); hops > policy.maxHops() {
		if err := body.Discard(); err != nil {
			return s.refuseBytes(t, body, err)
		}
		// RFC 5321, section 6.3; RFC 3463: X.4.6, routing loop detected.
		reply := wire.NewReply(554, fmt.Sprintf("5.4.6 Too many hops (%d Received fields); id %s", hops, t.id))
		t.outcome = OutcomeRefused
		s.logBytesRefused(t, body.Size(), reply, errTooManyHops)
		return reply
	}
	if !s.judgeHeader(t, body, section) {
		if err := body.Discard(); err != nil {
			return s.refuseBytes(t, body, err)
		}
		// RFC 3463: X.6.0, other or undefined media error.
		reply := wire.NewReply(554, fmt.Sprintf("5.6.0 Too many or too complex sender addresses in the header (limit %d); id %s", policy.AddressLimit(), t.id))
		t.outcome = OutcomeRefused
		s.logBytesRefused(t, body.Size(), reply, errTooManyAddresses)
		return reply
	}

	worst := verdict.Decide(t.findings, t.onlyExempt())
	action := worst.Verdict.Action
	switch action {
	case verdict.Reject, verdict.Defer:
		if err := body.Discard(); err != nil {
			return s.refuseBytes(t, body, err)
		}
		reply := policy.refusal(action, worst, t.id)
		s.logRefusal(t, worst, t.recipients(), action, reply)
		t.next.Abort() // its connection serves others while this client waits
		s.tarpit(t, worst)
		return reply
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
		s.logDiscarded(t, t.discarder(worst))
	}
	return reply
}

// judgeHeader reads what is of interest from the header section, and looks its
// senders up where they are to be judged. It reports false if those are too many;
// recipients that are reachable by every sender get the message all the same.
func (s *session) judgeHeader(t *transaction, body *wire.Body, section []byte) bool {
	policy := &t.settings.Policy
	clean := section
	if body.Stuffed() {
		clean = wire.Unstuff(section)
	}
	clean = bytes.TrimSuffix(clean, []byte("\r\n"))
	if t.judge == nil || !policy.JudgesHeader(t.envelope) {
		t.messageID = header.Senders(clean, nil).MessageID
		return true
	}
	found := policy.ReadHeader(clean, greetingNames(t.settings.NextHop))
	t.messageID = found.MessageID
	var kept headerFindings
	for f := range policy.JudgeHeader(s.server.ctx, t.judge, &t.message, found) {
		kept.add(f)
	}
	if found.TooMany() {
		return t.onlyExempt()
	}
	for _, field := range found.FieldsWithoutAddress() {
		s.logNoAddress(t, field)
	}
	t.findings = kept.deciding
	s.logUnreadable(t, kept)
	s.logMonitored(t, kept.monitored)
	return true
}

// greetingNames are the names with which the servers of a next hop greet.
func greetingNames(next nexthop.Target) []string {
	var names []string
	for _, text := range nexthop.Greetings(next) {
		if name := nexthop.GreetingName(text); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// onlyExempt reports whether every recipient is reachable by every sender.
func (t *transaction) onlyExempt() bool {
	for _, r := range t.accepted {
		if !r.exempt {
			return false
		}
	}
	return len(t.discarded) == 0
}

// recipients are all that were answered with 250.
func (t *transaction) recipients() []wire.Path {
	paths := make([]wire.Path, 0, len(t.accepted)+len(t.discarded))
	for _, r := range t.accepted {
		paths = append(paths, r.path)
	}
	return append(paths, t.discarded...)
}

// discarder is the finding because of which recipients are discarded.
func (t *transaction) discarder(worst verdict.Finding) verdict.Finding {
	if t.envelope.Verdict.Action == verdict.Discard {
		return t.envelope
	}
	return worst
}

// keepExempt moves the recipients that are not exempt to the discarded ones.
// The next hop has taken them already, so the transaction there is begun anew
// for those that are left. A reply that is not zero is the client's: the next
// hop no longer takes them.
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
	for i, r := range kept {
		reply, err := s.askRcpt(t, r)
		if err != nil {
			reply = s.unavailable(t, err)
		}
		switch {
		case reply.Positive():
			kept[i].late = wire.Reply{}
		case partial.HasAny(r.known):
			kept[i].late = reply
		case err != nil:
			s.logNextHopFailure(t, []wire.Path{r.path}, reply, err)
			return reply
		default:
			s.logNextHopRefusal(t, r.path, reply)
			return reply
		}
	}
	return wire.Reply{}
}

// discard takes the message and drops it.
func (s *session) discard(t *transaction, body *wire.Body, worst verdict.Finding) wire.Reply {
	if err := body.Discard(); err != nil {
		return s.refuseBytes(t, body, err)
	}
	t.outcome = OutcomeDiscarded
	s.logDiscarded(t, t.discarder(worst))
	return wire.NewReply(250, "2.0.0 Ok: id "+t.id)
}

// format is how the next hop is given the message.
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

// flushEvery bounds how long a slow client's message is kept back to be passed
// on in larger pieces: the next hop must not take the client's pauses for ours.
// With DataTimeout on top it is less than the 5 minutes that servers wait.
const flushEvery = 20 * time.Second

// deliver passes the message on and returns the next hop's reply.
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
	// Whoever waits for a next hop that does not read is interrupted when the
	// gate has to stop. From Commit on, nothing interrupts.
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
		t.digestBody(piece)
	}
	if reply := s.recognise(t, body.Size()); !reply.IsZero() {
		msg.Abort()
		return reply
	}
	reply, each, err := commit(s.server.ctx, msg)
	if err != nil && !errors.Is(err, nexthop.ErrReplyLost) {
		return s.nextHopFailed(t, body, err)
	}
	return s.concluded(t, body.Size(), reply, each, err)
}

// trace is what goes in front of the message: a mark for each entry because of
// which it is tagged, at most maxTags, and our Received field.
func (s *session) trace(t *transaction, section []byte, stuffed bool) []byte {
	var b []byte
	for _, field := range tagFields(t.envelope, t.findings) {
		b = append(b, field...)
	}
	hostname := s.server.cfg.Hostname
	b = append(b, receivedField(t.client.Helo, t.client.Addr.Addr(), hostname, s.protocol(t), t.id, time.Now())...)
	if stuffed {
		section = bytes.TrimPrefix(section, []byte(".")) // what the next hop will make of it
	}
	if len(section) > 0 && (section[0] == ' ' || section[0] == '\t') {
		b = append(b, continuationField...)
	}
	return b
}

// nextHopFailed lets the client finish and tells it to try again, or what the
// next hop had to say about the message when it broke off.
func (s *session) nextHopFailed(t *transaction, body *wire.Body, cause error) wire.Reply {
	reply := s.unavailable(t, cause)
	var said *nexthop.ReplyError
	if errors.As(cause, &said) && !said.Reply.Positive() && checkReply(said.Reply) == nil {
		reply = said.Reply
	}
	s.logNextHopFailure(t, t.recipients(), reply, cause)
	if err := body.Discard(); err != nil {
		return s.refuseBytes(t, body, err)
	}
	return reply
}

// refuseBytes is the reply to a message that can't be passed on because of how
// it came. The connection ends behind it, unless the client came to the end of
// the message after all.
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
		s.logGivenUp(t, body.Size())
		return wire.NewReply(250, "2.0.0 Ok") // which nobody hears
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
