package smtpfilter

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"spamgate/smtpfilter/nexthop"
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
		return fmt.Errorf("the next hop returned %d %q, which is not a final reply", r.Code, r.Lines)
	}
	return nil
}

// askRcpt asks the next hop for a recipient.
func (s *session) askRcpt(t *transaction, r recipient) (wire.Reply, error) {
	reply, err := t.next.Rcpt(s.server.ctx, r.path.String(), r.params)
	if err == nil {
		err = checkReply(reply)
	}
	return reply, err
}

// askData opens the message at the next hop. Without a Message and an error, the reply is
// a refusal.
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
	each = slices.Clone(eachReply(msg))
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

// eachReply returns the next hop's replies for each recipient, if it has any.
func eachReply(msg nexthop.Message) []wire.Reply {
	if each, ok := msg.(nexthop.EachReply); ok {
		return each.Replies()
	}
	return nil
}
