package nexthop

import (
	"errors"
	"fmt"
	"time"

	"spamgate/smtpfilter/wire"
)

// errNoLMTP reports a server that refused LHLO and accepted HELO. It would reply to a
// message once only.
var errNoLMTP = errors.New("the server speaks SMTP, not LMTP")

// Replies returns the replies of an LMTP server; see EachReply.
func (m message) Replies() []wire.Reply { return m.t.replies }

// mergedReply reads the replies of an LMTP server to a message, one for each
// accepted recipient in their order (RFC 2033, section 4.2). It keeps them in
// t.replies and returns one for all. After a 421 the server closes the connection,
// so the 421 counts for the other recipients, too.
//
// Timeouts.Dot is for all replies together: the client waits for one, and if it gives
// up it sends the message again to those who have it.
//
// After an error t.replies holds the replies that came. If one makes no sense, the
// caller drops them all.
func (t *transaction) mergedReply() (merged wire.Reply, closing bool, err error) {
	replies := make([]wire.Reply, 0, t.accepted)
	deadline := time.Now().Add(t.conn.timeouts.Dot)
	for range t.accepted {
		reply, err := t.conn.readReply(time.Until(deadline))
		if err == nil && !reply.Positive() && !refusal(reply) {
			err = unexpected(reply)
		}
		if err != nil {
			t.replies = replies
			return wire.Reply{}, false, fmt.Errorf("%d of %d replies came: %w", len(replies), t.accepted, err)
		}
		if aboutSession(reply) {
			t.hop.noteFailed(t.hop.sessionError(t.conn, "", reply), StepReply)
			reply = wire.NewReply(451, "4.4.1 The mail server behind this gate is not available, try again later")
		}
		t.countRefused(1, reply)
		replies = append(replies, reply)
		if closing = reply.Code == codeClosing; closing {
			break
		}
	}
	last := replies[len(replies)-1]
	for len(replies) < t.accepted {
		replies = append(replies, last)
	}
	t.replies = replies
	return MergeReplies(replies), closing, t.conn.check(last, 0)
}

// MergeReplies returns one reply for the replies of one or more recipients. If they
// agree (all positive, all temporary or all permanent) it is the first. Otherwise it
// is 451, so that the client comes again for the others.
func MergeReplies(replies []wire.Reply) wire.Reply {
	var kinds [6]int
	for _, r := range replies {
		kinds[r.Code/100]++
	}
	first := replies[0]
	if kinds[first.Code/100] == len(replies) {
		return first
	}
	return wire.NewReply(451, fmt.Sprintf("4.3.0 Delivered to %d of %d recipients, send it again for all of them", kinds[2], len(replies)))
}
