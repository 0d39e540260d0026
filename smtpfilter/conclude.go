package smtpfilter

import (
	"slices"
	"strings"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/partial"
	"spamgate/smtpfilter/wire"
)

// checkDuplicate checks whether recipients already have the message, which the client has
// sent whole. If so, it returns the client's reply, and the message must not be delivered.
// Otherwise the reply is zero.
//
// If only some have it, the others were in other transactions before. The next hop can no
// longer leave out those who have it, so the client has to send the message again. Then
// the new entries of the others separate them.
func (s *session) checkDuplicate(t *transaction, size int64) wire.Reply {
	if t.digest == nil {
		return wire.Reply{}
	}
	sum := t.digest.Sum()
	var have, others []partial.Outcome
	for _, r := range t.accepted {
		if partial.Has(r.entries, sum) {
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
		t.outcome = OutcomeAccepted
		s.log(t, t.decided.Finding, t.recipients(), reply, &verdict.Decision{Event: "delivered before", Size: size, Sized: true})
		return reply
	}
	s.settle(t, sum, others)
	reply := wire.NewReply(451, "4.3.0 Some recipients have the message, send it again for all of them; id "+t.id)
	t.outcome = OutcomePartial
	s.log(t, t.decided.Finding, t.recipients(), reply, &verdict.Decision{Event: "some recipients have the message", Size: size, Sized: true})
	return reply
}

// conclude returns the client's reply to a message that the next hop has received whole. The
// next hop has sent one reply for all recipients and perhaps one for each, or its reply was
// lost.
func (s *session) conclude(t *transaction, size int64, reply wire.Reply, replies []wire.Reply, lost error) wire.Reply {
	each := t.eachReply(reply, replies, lost)
	otherKind := func(r wire.Reply) bool { return r.Code/100 != each[0].Code/100 }
	agree := lost == nil && !slices.ContainsFunc(each, otherKind)
	s.remember(t, each, agree && !(t.digest != nil && each[0].Positive() && s.conn.Gone()))
	switch {
	case lost != nil:
		reply = wire.NewReply(451, "4.4.2 The mail server behind this gate did not confirm the message; id "+t.id)
		s.logEach(t, size, reply, each)
		t.outcome = OutcomeUnknown
		unknown := t.recipientsWith(func(i int) bool { return each[i].IsZero() })
		s.log(t, &noFinding, unknown, reply, &verdict.Decision{
			Event: "no answer from the next hop", Outcome: "unknown", Size: size, Sized: true, Error: s.shown(t, lost.Error())})
	case agree:
		reply = t.commonReply(each)
		s.logOutcome(t, size, reply)
	default:
		reply = nexthop.MergeReplies(each)
		reply.Lines = []string{reply.Lines[0] + "; id " + t.id}
		s.logEach(t, size, reply, each)
	}
	return reply
}

// eachReply returns the reply for each accepted recipient; zero if it is unknown. The next
// hop has sent one for all, or replies for the recipients that it has accepted.
func (t *transaction) eachReply(reply wire.Reply, replies []wire.Reply, lost error) []wire.Reply {
	each := make([]wire.Reply, len(t.accepted))
	for i, r := range t.accepted {
		switch {
		case !r.refusal.IsZero():
			each[i] = r.refusal
		case len(replies) > 0:
			each[i], replies = replies[0], replies[1:]
		case lost == nil:
			each[i] = reply
		}
	}
	return each
}

// commonReply returns the client's reply if the replies for all recipients are of the same
// kind: the first one. If the next hop has refused several recipients in the same words
// except for their addresses, commonReply removes these, since the client takes the reply
// for every recipient.
func (t *transaction) commonReply(each []wire.Reply) wire.Reply {
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

// words returns the reply for a recipient without its address.
func (t *transaction) words(i int, r wire.Reply) string {
	return without(r.String(), t.accepted[i].path.String())
}

// without removes an address from a text.
func without(text, address string) string {
	for _, form := range []string{"<" + address + "> ", "<" + address + ">", address + " ", address} {
		text = strings.ReplaceAll(text, form, "")
	}
	return text
}

// remember stores the reply for each recipient in the Memory, if the replies differ or the
// client has disconnected. Final says that the client receives the final reply, after which
// the Memory forgets the message.
func (s *session) remember(t *transaction, each []wire.Reply, final bool) {
	if t.digest == nil {
		return
	}
	sum := t.digest.Sum()
	settled := func(r wire.Reply) bool { return r.Positive() || r.Permanent() }
	if (final || !slices.ContainsFunc(each, settled)) && !t.settings.Memory.Knows(sum) {
		return // nothing to store, and nothing to forget
	}
	outcomes := make([]partial.Outcome, 0, len(each)+len(t.deferred))
	for i, r := range each {
		o := partial.Outcome{To: t.accepted[i].path.String(), State: partial.Pending}
		switch {
		case final && settled(r):
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

// settle stores outcomes in the Memory. It only logs that the Memory could not write them.
func (s *session) settle(t *transaction, sum partial.Sum, outcomes []partial.Outcome) {
	if err := t.settings.Memory.Settle(t.from.String(), sum, outcomes); err != nil {
		s.log(t, t.decided.Finding, nil, wire.Reply{}, &verdict.Decision{
			Event: "who has the message is not on disk: if the gate restarts before the client comes again, some get it twice",
			Error: s.shown(t, err.Error())})
	}
}

// logEach logs the recipients that have a message, and for each different refusal the
// recipients that the next hop refused with it.
func (s *session) logEach(t *transaction, size int64, reply wire.Reply, each []wire.Reply) {
	t.outcome = OutcomePartial
	words := make([]string, len(each)) // "" for those that have the message
	for i, r := range each {
		if !r.Positive() {
			words[i] = t.words(i, r)
		}
	}
	logAlike := func(text string, first int) {
		to := t.recipientsWith(func(i int) bool { return !each[i].IsZero() && words[i] == words[first] })
		s.log(t, t.decided.Finding, to, reply, &verdict.Decision{
			Event: text, Action: verdict.Accept.String(), NextHop: s.shown(t, each[first].String()), Size: size, Sized: true})
	}
	if first := slices.IndexFunc(each, wire.Reply.Positive); first >= 0 {
		logAlike("delivered to some recipients", first)
	}
	logged := map[string]bool{"": true}
	for i, w := range words {
		if !logged[w] {
			logged[w] = true
			logAlike("refused by the next hop", i)
		}
	}
}
