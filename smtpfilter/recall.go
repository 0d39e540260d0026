package smtpfilter

import (
	"context"
	"slices"

	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/partial"
	"spamgate/smtpfilter/wire"
)

// Memory remembers the next hop's replies for each recipient of a message, if they differ;
// a *partial.Store is one. Its methods are safe for concurrent use. The reply to RCPT waits
// for Recall and Turn.
type Memory interface {
	// Recall returns the entries of a sender and a recipient.
	Recall(from, to string) []partial.Entry

	// Turn reports whether the first recipient of a transaction should be
	// admitted, and not others of its message.
	Turn(from, to string) bool

	// Knows reports whether there is an entry for a message.
	Knows(partial.Sum) bool

	// Settle stores the outcomes of a message. After an error they may be lost at a
	// restart.
	Settle(from string, m partial.Sum, outcomes []partial.Outcome) error
}

// tryLater is the reply to a recipient that cannot share the transaction, or that has to
// wait for others. The client tries it again (RFC 5321, section 4.5.3.1.10).
var tryLater = wire.NewReply(452, "4.5.3 Try this recipient again later, others of this message go first")

// recall returns the entries of a recipient, and the group of the accepted recipients with
// it. Ok is false if the recipient has to wait.
func (t *transaction) recall(rcpt wire.Path) (entries []partial.Entry, group partial.Group, ok bool) {
	m := t.settings.Memory
	if m == nil {
		return nil, t.group, true
	}
	from, to := t.from.String(), rcpt.String()
	entries = m.Recall(from, to)
	group = t.group
	ok = group.Add(entries) && (len(entries) == 0 || !t.group.Empty() || m.Turn(from, to))
	return entries, group, ok
}

// open opens the message at the next hop. If the recipients may already have the message,
// open returns a Message that keeps a failure until the end, when that is known.
func (s *session) open(t *transaction, body *wire.Body, section []byte) (nexthop.Message, wire.Reply, error) {
	if t.settings.Memory != nil {
		t.digest = partial.NewDigest(t.from.String(), unstuffed(body, section), body.Stuffed())
	}
	if !slices.ContainsFunc(t.accepted, func(r recipient) bool { return r.refusal.IsZero() }) {
		return &lateMessage{reply: t.accepted[0].refusal}, wire.Reply{}, nil
	}
	msg, reply, err := s.askData(t, format(body))
	if !t.group.MayHave() {
		return msg, reply, err
	}
	return &lateMessage{next: msg, failed: msg == nil, reply: reply, err: err}, wire.Reply{}, nil
}

// lateMessage is a Message that keeps the next hop's failure or refusal until Commit. It is
// for a message that the recipients may already have: then Commit is not called.
type lateMessage struct {
	next   nexthop.Message // nil if the next hop has not opened it
	failed bool
	reply  wire.Reply
	err    error
}

// Write passes p on until the next hop fails. It returns no error.
func (u *lateMessage) Write(p []byte) (int, error) {
	u.pass(func() error { _, err := u.next.Write(p); return err })
	return len(p), nil
}

// Flush flushes the next hop's Message. It returns no error.
func (u *lateMessage) Flush() error {
	u.pass(func() error { return u.next.Flush() })
	return nil
}

// pass calls do unless the next hop has failed.
func (u *lateMessage) pass(do func() error) {
	if u.next == nil || u.failed {
		return
	}
	if u.err = do(); u.err != nil {
		u.failed = true
		u.next.Abort()
	}
}

// Commit ends the message, or returns the failure or refusal.
func (u *lateMessage) Commit(ctx context.Context) (wire.Reply, error) {
	if u.next == nil || u.failed {
		return u.reply, u.err
	}
	return u.next.Commit(ctx)
}

// Replies returns the next hop's replies; see nexthop.EachReply.
func (u *lateMessage) Replies() []wire.Reply {
	if m, ok := u.next.(nexthop.EachReply); ok {
		return m.Replies()
	}
	return nil
}

// Abort aborts the next hop's Message, if there is one.
func (u *lateMessage) Abort() {
	if u.next != nil {
		u.next.Abort()
	}
}
