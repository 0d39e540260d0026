package nexthop

import (
	"errors"
	"fmt"

	"spamgate/smtpfilter/wire"
)

// oneAtATime is the answer to a further recipient of a message that an LMTP
// server would answer for each recipient apart (RFC 2033, section 4.2), while
// the client is to hear one reply. A client that gets it sends the message to
// the others in a transaction of their own (RFC 5321, section 4.5.3.1.10).
var oneAtATime = wire.NewReply(452, "4.5.3 One recipient at a time, try again")

// IsOneAtATime reports whether a reply to Rcpt, which looks like the next hop's, is
// our own: an LMTP server takes one recipient a transaction.
func IsOneAtATime(r wire.Reply) bool {
	return len(r.Lines) > 0 && &r.Lines[0] == &oneAtATime.Lines[0] // a server may say the same
}

// errNoLMTP is about a server that refused LHLO and accepted HELO, with which the
// client tries again. It would answer a message once only.
var errNoLMTP = errors.New("the server speaks SMTP, not LMTP")

// oneRecipient reports whether a transaction has one recipient at most.
func (s *SMTP) oneRecipient() bool { return s.config.LMTP && !s.config.Merge }

// mergedReply reads the replies of an LMTP server to a message, one for each
// recipient it has accepted, and makes one of them. Behind a 421 none is waited
// for.
func (t *transaction) mergedReply() (merged wire.Reply, closing bool, err error) {
	replies := make([]wire.Reply, 0, t.accepted)
	for range t.accepted {
		reply, err := t.conn.readReply(t.conn.timeouts.Dot)
		if err != nil {
			return wire.Reply{}, false, fmt.Errorf("%d of %d replies came: %w", len(replies), t.accepted, err)
		}
		if !reply.Positive() && !refusal(reply) {
			return wire.Reply{}, false, fmt.Errorf("%w: unexpected %s", wire.ErrBadReply, reply)
		}
		replies = append(replies, reply)
		if reply.Code == codeClosing {
			return mergeReplies(replies, t.accepted), true, nil
		}
	}
	return mergeReplies(replies, t.accepted), false, t.conn.check(replies[len(replies)-1], 0)
}

// mergeReplies makes one reply of those for n recipients. Where they agree it is
// the first: all positive, all temporary or all permanent. Otherwise the client
// is to try again, for those to whom the message could not be delivered: the
// others get it once more. Missing replies, behind a 421, are failures.
func mergeReplies(replies []wire.Reply, n int) wire.Reply {
	var kinds [6]int
	for _, r := range replies {
		kinds[r.Code/100]++
	}
	first := replies[0]
	if len(replies) == n && kinds[first.Code/100] == n {
		return first
	}
	return wire.NewReply(451, fmt.Sprintf("4.3.0 Not delivered to %d of %d recipients, to be tried again for all", n-kinds[2], n))
}
