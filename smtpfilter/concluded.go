package smtpfilter

import (
	"slices"
	"strings"

	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/partial"
	"spamgate/smtpfilter/wire"
)

// recognise looks whether the recipients have the message, which has come whole. If
// so its reply is the client's, and the message must not be delivered. Most often
// nobody has it, and the reply is zero.
//
// Some may have it and others not: those were in other transactions before. Who has
// it cannot be left out any more, so that the client is to send it again. What is
// then known of the others keeps them apart.
func (s *session) recognise(t *transaction, size int64) wire.Reply {
	if t.digest == nil {
		return wire.Reply{}
	}
	sum := t.digest.Sum()
	var have, others []partial.Outcome
	for _, r := range t.accepted {
		if partial.Has(r.known, sum) {
			have = append(have, partial.Outcome{To: r.path.String()})
		} else {
			others = append(others, partial.Outcome{To: r.path.String(), State: partial.Pending})
		}
	}
	switch {
	case have == nil:
		return wire.Reply{}
	case others == nil:
		s.settle(t, sum, have)
		reply := wire.NewReply(250, "2.0.0 Ok: delivered before; id "+t.id)
		s.logDeliveredBefore(t, size, reply)
		return reply
	}
	s.settle(t, sum, others)
	reply := wire.NewReply(451, "4.3.0 Some recipients have the message, send it again for all of them; id "+t.id)
	s.logSomeHaveIt(t, size, reply)
	return reply
}

// concluded takes the next hop's reply to a whole message, or the news that it is
// lost. It returns the client's.
func (s *session) concluded(t *transaction, size int64, reply wire.Reply, replies []wire.Reply, lost error) wire.Reply {
	each := t.eachReply(reply, replies, lost)
	agree := lost == nil && sameKind(each)
	s.remember(t, each, agree && !(t.digest != nil && each[0].Positive() && s.conn.Gone()))
	switch {
	case lost != nil:
		reply = wire.NewReply(451, "4.4.2 The mail server behind this gate did not confirm the message; id "+t.id)
		s.logEach(t, size, reply, each)
		s.logUnknown(t, t.recipientsWith(each, wire.Reply.IsZero), size, reply, lost)
	case agree:
		reply = t.oneVoice(each)
		s.logOutcome(t, size, reply)
	default:
		reply = nexthop.MergeReplies(each)
		reply.Lines = []string{reply.Lines[0] + "; id " + t.id}
		s.logEach(t, size, reply, each)
	}
	return reply
}

// eachReply returns the reply for each accepted recipient; zero if it is unknown.
// The next hop has said one thing for all, or replies for those that it has taken.
func (t *transaction) eachReply(one wire.Reply, replies []wire.Reply, lost error) []wire.Reply {
	each := make([]wire.Reply, len(t.accepted))
	for i, r := range t.accepted {
		switch {
		case !r.late.IsZero():
			each[i] = r.late
		case len(replies) > 0:
			each[i], replies = replies[0], replies[1:]
		case lost == nil:
			each[i] = one
		}
	}
	return each
}

// sameKind reports whether all replies are positive, all temporary or all permanent.
func sameKind(replies []wire.Reply) bool {
	for _, r := range replies[1:] {
		if r.Code/100 != replies[0].Code/100 {
			return false
		}
	}
	return true
}

// oneVoice is the client's reply, where the replies for all recipients are of one
// kind: the first one. If the next hop has refused several recipients in the same
// words, but for their addresses, these are left out: each sender hears his reply
// for every recipient.
func (t *transaction) oneVoice(each []wire.Reply) wire.Reply {
	first := each[0]
	if len(each) == 1 || first.Positive() {
		return first
	}
	words := t.words(0, first)
	for i, r := range each[1:] {
		if words != t.words(i+1, r) {
			return first
		}
	}
	common := wire.Reply{Code: first.Code, Lines: make([]string, len(first.Lines))}
	for i, line := range first.Lines {
		common.Lines[i] = without(line, t.accepted[0].path.String())
	}
	return common
}

// words is a reply without the address of the recipient that it is for.
func (t *transaction) words(i int, r wire.Reply) string {
	return without(r.String(), t.accepted[i].path.String())
}

// without cuts an address out of a text.
func without(text, address string) string {
	for _, form := range []string{"<" + address + "> ", "<" + address + ">", address + " ", address} {
		text = strings.ReplaceAll(text, form, "")
	}
	return text
}

// remember has the Memory keep what each recipient got, where they differ or where the
// client has left before it could hear, and forget it where the client hears the final
// reply.
func (s *session) remember(t *transaction, each []wire.Reply, heard bool) {
	if t.digest == nil {
		return
	}
	sum := t.digest.Sum()
	final := func(r wire.Reply) bool { return r.Positive() || r.Permanent() }
	if (heard || !slices.ContainsFunc(each, final)) && !t.settings.Memory.Knows(sum) {
		return // every recipient is as if the message had never come, or has its final reply
	}
	outcomes := make([]partial.Outcome, 0, len(each)+len(t.deferred))
	for i, r := range each {
		o := partial.Outcome{To: t.accepted[i].path.String(), State: partial.Pending}
		switch {
		case heard && final(r):
			o.State = partial.Settled
		case r.Positive():
			o.State = partial.Delivered
		case r.Permanent():
			o.State, o.Words = partial.Refused, t.words(i, r)
		}
		outcomes = append(outcomes, o)
	}
	for _, rcpt := range t.deferred {
		outcomes = append(outcomes, partial.Outcome{To: rcpt.String(), State: partial.Pending})
	}
	s.settle(t, sum, outcomes)
}

// settle tells the Memory. If it cannot keep it on disk, mail goes on all the same.
func (s *session) settle(t *transaction, sum partial.Sum, outcomes []partial.Outcome) {
	if err := t.settings.Memory.Settle(t.from.String(), sum, outcomes); err != nil {
		s.logForgetful(t, err)
	}
}

// recipientsWith are the accepted recipients whose reply is of a kind.
func (t *transaction) recipientsWith(each []wire.Reply, kind func(wire.Reply) bool) []wire.Path {
	var paths []wire.Path
	for i, r := range each {
		if kind(r) {
			paths = append(paths, t.accepted[i].path)
		}
	}
	return paths
}
