package smtpfilter

import (
	"context"

	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/partial"
	"spamgate/smtpfilter/wire"
)

// Memory remembers what the next hop has said of each recipient of a message, where
// it said different things; a *partial.Store is one. Its methods are called by many
// goroutines at once. Recall and Turn stand between RCPT and its reply.
type Memory interface {
	// Recall returns what is known of a recipient of a sender.
	Recall(from, to string) []partial.Entry

	// Turn reports whether the first recipient of a transaction should be
	// admitted, rather than others of its message.
	Turn(from, to string) bool

	// Knows reports whether anything is known of a message.
	Knows(partial.Sum) bool

	// Settle notes what became of a message. After an error it may be forgotten
	// when the gate restarts.
	Settle(from string, m partial.Sum, outcomes []partial.Outcome) error
}

// notNow is the reply to a recipient that cannot go together with those before it,
// or that others should precede. Its client comes again (RFC 5321, section
// 4.5.3.1.10).
var notNow = wire.NewReply(452, "4.5.3 Try this recipient again later, others of this message go first")

// recall returns what is known of a recipient, and the group of the accepted
// recipients with this one. It is not ok if this one has to wait.
func (t *transaction) recall(rcpt wire.Path) (known []partial.Entry, together partial.Group, ok bool) {
	m := t.settings.Memory
	if m == nil {
		return nil, t.together, true
	}
	from, to := t.from.String(), rcpt.String()
	known = m.Recall(from, to)
	together = t.together
	if !together.Add(known) {
		return nil, together, false
	}
	if len(known) > 0 && t.together.Empty() && !m.Turn(from, to) {
		return nil, together, false
	}
	return known, together, true
}

// open opens the message with the next hop. If the recipients may have it, what goes
// wrong there is told at the end, when it is known whether they do.
func (s *session) open(t *transaction, body *wire.Body, section []byte) (nexthop.Message, wire.Reply, error) {
	if t.settings.Memory != nil {
		clean := section
		if body.Stuffed() {
			clean = wire.Unstuff(section)
		}
		t.digest = partial.NewDigest(t.from.String(), clean, body.Stuffed())
	}
	if t.allLate() {
		return &undecided{reply: t.accepted[0].late}, wire.Reply{}, nil
	}
	msg, reply, err := s.askData(t, format(body))
	if !t.together.MayHave() {
		return msg, reply, err
	}
	return &undecided{next: msg, failed: msg == nil, reply: reply, err: err}, wire.Reply{}, nil
}

// allLate reports whether the next hop has refused every recipient.
func (t *transaction) allLate() bool {
	for _, r := range t.accepted {
		if r.late.IsZero() {
			return false
		}
	}
	return true
}

// digestBody takes a piece of the body into the digest, where there is one.
func (t *transaction) digestBody(piece []byte) {
	if t.digest != nil {
		t.digest.Write(piece)
	}
}

// undecided is a Message that the recipients may have already. The next hop's
// failures and refusals are kept for Commit, which is not called if they do.
type undecided struct {
	next   nexthop.Message // nil if the next hop has not opened it
	failed bool
	reply  wire.Reply
	err    error
}

// Write passes p on for as long as the next hop takes it. It never fails.
func (u *undecided) Write(p []byte) (int, error) {
	u.pass(func() error { _, err := u.next.Write(p); return err })
	return len(p), nil
}

// Flush is the next hop's. It never fails.
func (u *undecided) Flush() error {
	u.pass(func() error { return u.next.Flush() })
	return nil
}

func (u *undecided) pass(do func() error) {
	if u.next == nil || u.failed {
		return
	}
	if u.err = do(); u.err != nil {
		u.failed = true
		u.next.Abort()
	}
}

// Commit ends the message, or says why the next hop has none. Both are zero where it
// has refused every recipient.
func (u *undecided) Commit(ctx context.Context) (wire.Reply, error) {
	if u.next == nil || u.failed {
		return u.reply, u.err
	}
	return u.next.Commit(ctx)
}

// Replies are the next hop's; see nexthop.EachReply.
func (u *undecided) Replies() []wire.Reply { return eachReply(u.next) }

// Abort aborts what the next hop has of it.
func (u *undecided) Abort() {
	if u.next != nil {
		u.next.Abort()
	}
}
