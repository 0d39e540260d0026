package nexthop

import (
	"errors"
	"fmt"
	"time"

	"spamgate/smtpfilter/wire"
)

// errNoLMTP is about a server that refused LHLO and accepted HELO, with which the
// client tries again. It would answer a message once only.
var errNoLMTP = errors.New("the server speaks SMTP, not LMTP")

// Replies returns the answers of an LMTP server; see EachReply.
func (m message) Replies() []wire.Reply { return m.t.replies }

// mergedReply reads the replies of an LMTP server to a message, one for each
// recipient that it has accepted, in their order (RFC 2033, section 4.2). It keeps
// them in t.replies and returns one for all. After a 421 it waits for no other:
// the server ends there, and so it counts for the recipients that are left, too.
//
// Timeouts.Dot is for all replies together: the client waits for one, and a client that
// has left sends the message again to those who have it.
//
// If the connection breaks, or the time is over, t.replies holds those that came. After a reply that
// makes no sense they are worth nothing, and the caller drops them.
func (t *transaction) mergedReply() (merged wire.Reply, closing bool, err error) {
	replies := make([]wire.Reply, 0, t.accepted)
	deadline := time.Now().Add(t.conn.timeouts.Dot)
	for range t.accepted {
		reply, err := t.conn.readReply(time.Until(deadline))
		if err == nil && !reply.Positive() && !refusal(reply) {
			err = fmt.Errorf("%w: unexpected %s", wire.ErrBadReply, reply)
		}
		if err != nil {
			t.replies = replies
			return wire.Reply{}, false, fmt.Errorf("%d of %d replies came: %w", len(replies), t.accepted, err)
		}
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

// MergeReplies makes one reply of those for one recipient or more. Where they agree
// it is the first: all positive, all temporary or all permanent. Otherwise it is
// 451: the client is to come again, for those who could not be served.
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
