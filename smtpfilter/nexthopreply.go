package smtpfilter

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/partial"
	"spamgate/smtpfilter/wire"
)

// A Target may be any program's. These functions check every reply that it returns before
// a client receives it.

// checkReply returns an error unless r is one final SMTP reply.
func checkReply(r wire.Reply) error {
	valid := (r.Positive() || r.Temporary() || r.Permanent()) && len(r.Lines) > 0
	for _, line := range r.Lines {
		valid = valid && !strings.ContainsAny(line, "\r\n\x00")
	}
	if !valid {
		return fmt.Errorf("the next hop returned %q, which is not a final reply", r.String())
	}
	return nil
}

// askRcpt asks the next hop for a recipient. The client may send the message to it if the
// outcome is RecipientAccepted. It logs a refusal.
func (s *session) askRcpt(t *transaction, r *recipient) (wire.Reply, RecipientOutcome) {
	reply, err := t.next.Rcpt(s.server.ctx, r.path.String(), r.params)
	if err == nil {
		err = checkReply(reply)
	}
	if err != nil {
		reply = s.unavailable(t, err)
	}
	r.refusal = wire.Reply{}
	switch {
	case reply.Positive():
		return reply, RecipientAccepted
	case partial.HasAny(r.entries):
		// If the recipient already has the message that comes, a refusal does not matter.
		r.refusal = reply
		return wire.NewReply(250, "2.1.5 Ok"), RecipientAccepted
	case err != nil:
		s.logNextHopFailure(t, []wire.Path{r.path}, reply, err)
		s.count(t)
		return reply, RecipientFailed
	}
	if reply.Temporary() {
		t.deferred = append(t.deferred, r.path)
	}
	t.outcome = OutcomeNextHop
	s.log(t, &r.class.Envelope, []wire.Path{r.path}, wire.Reply{}, &verdict.Decision{
		Event: "refused by the next hop", Action: verdict.Accept.String(), NextHop: s.shown(t, reply.String())})
	return reply, RecipientNextHop
}

// askData opens the message at the next hop. If it returns neither a Message nor an error,
// the reply is a refusal.
func (s *session) askData(t *transaction, format nexthop.Format) (nexthop.Message, wire.Reply, error) {
	msg, reply, err := t.next.Data(s.server.ctx, format)
	if err == nil && msg == nil {
		if err = checkReply(reply); err == nil && reply.Positive() {
			err = fmt.Errorf("the next hop returned no message with the reply %s", reply)
		}
	}
	return msg, reply, err
}

// commit ends a message. It returns the next hop's reply for all recipients, and those for
// each if it has any. After an invalid reply the message may have been delivered, so the
// error is a nexthop.ErrReplyLost.
func commit(ctx context.Context, msg nexthop.Message) (reply wire.Reply, each []wire.Reply, err error) {
	reply, err = msg.Commit(ctx)
	if m, ok := msg.(nexthop.EachReply); ok {
		each = slices.Clone(m.Replies())
	}
	if err != nil {
		return reply, each, err
	}
	err = checkReply(reply)
	for i, r := range each {
		if invalid := checkReply(r); invalid != nil {
			each[i], err = wire.Reply{}, invalid
		}
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", nexthop.ErrReplyLost, err)
	}
	return reply, each, err
}
