package check

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"spamgate/blocklist/verdict"
	"spamgate/internal/term"
	"spamgate/smtpfilter"
)

// addressResult is the output for an address.
type addressResult struct {
	Address  string      `json:"address"`
	Action   string      `json:"action"` // the stricter of envelope and header
	Envelope *finding    `json:"envelope,omitempty"`
	Header   *finding    `json:"header,omitempty"`
	Asked    []dnsAnswer `json:"asked,omitempty"` // what lists in DNS said
	Error    string      `json:"error,omitempty"`

	// ToEach is what mail to each of the recipients gets, if some are given. Envelope and
	// Header are in its groups then.
	ToEach []shownGroup `json:"to_each,omitempty"`
	Mixed  bool         `json:"mixed,omitempty"` // with the address in its header, a message is refused for all of them

	NotAsked []string `json:"not_asked,omitempty"` // lists by recipient, if no recipient is given

	Doors []doorResult `json:"doors,omitempty"` // of addresses that are named
}

// judgeInHeader judges the envelope sender of a message as if it were in the header.
func (k *session) judgeInHeader(ctx context.Context, m *judgedMessage, class *smtpfilter.Class) verdict.Finding {
	f := noFinding("header", m.Message.ReversePath)
	switch {
	case m.Judge == nil:
		return f
	case k.alike && len(k.recipients) == 0:
		f.Verdict = class.Envelope.Verdict
	case class.Envelope.Err == nil && f.Address != "":
		f.Verdict, f.Err = m.Judge.Judge(ctx, &m.Message, verdict.Query{Stage: verdict.Header, Address: f.Address, For: class.For})
	}
	class.Apply(&f)
	return f
}

// reversePath returns an address without brackets.
func reversePath(address string) string {
	if strings.HasPrefix(address, "<") && strings.HasSuffix(address, ">") {
		return address[1 : len(address)-1]
	}
	return address
}

// noFinding returns the finding about a sender that no list knows.
func noFinding(identity, address string) verdict.Finding {
	return verdict.Finding{Identity: identity, Address: address}
}

// judgeForEach judges an address for the recipients, by what counts for them. In a group the
// finding about the header is the only one. The conclusion is about a message to all of them
// with the address in its header.
func (k *session) judgeForEach(ctx context.Context, address string) ([]*group, *smtpfilter.Conclusion) {
	m := &judgedMessage{messageIn: messageIn{judged: true}}
	m.Policy, m.Message = &k.policy, k.facts(reversePath(address))
	m.begin(ctx, k.newJudge, false, k.recipients)
	var only []*smtpfilter.Class // with the header alone
	for _, g := range m.groups {
		g.header = []verdict.Finding{k.judgeInHeader(ctx, m, g.class)}
		if k.asked.InHeader {
			g.class.Envelope = noFinding(verdict.EnvelopeIdentity, m.Message.ReversePath)
		}
		only = append(only, &smtpfilter.Class{Rule: g.class.Rule, Exempt: g.class.Exempt, Header: g.header})
	}
	return m.groups, m.For(only...)
}

// result judges an address for recipients who have no say.
func (k *session) result(ctx context.Context, address string) (addressResult, verdict.Finding, verdict.Finding) {
	groups, _ := k.judgeForEach(ctx, address)
	envelope, header := groups[0].class.Envelope, groups[0].header[0]
	return k.newResult(address, envelope, header), envelope, header
}

// newResult returns the output for an address with these findings.
func (k *session) newResult(address string, envelope, header verdict.Finding) addressResult {
	worst := max(envelope.Verdict.Action, header.Verdict.Action)
	r := addressResult{Address: address, Action: worst.String(), Asked: k.answered()}
	if err := errors.Join(envelope.Err, header.Err); err != nil {
		r.Action, r.Error = "error", err.Error()
		return r
	}
	r.Envelope, r.Header = unnamed(envelope), unnamed(header)
	return r
}

// unnamed returns a finding for programs without the sender, which is the address.
func unnamed(f verdict.Finding) *finding {
	shown := newFinding(f)
	shown.Identity, shown.Address = "", ""
	return &shown
}

// named is the result for an address that was asked about by name.
type named struct {
	addressResult
	groups []*group
	toAll  *smtpfilter.Conclusion // of a message with the address in its header
	lists  verdict.Action         // of the lists, for the recipients
	doors  verdict.Action         // the strictest of the doors
}

// resultOfNamed judges an address, as the doors do, too.
func (k *session) resultOfNamed(ctx context.Context, address string) (r named, err error) {
	r.groups, r.toAll = k.judgeForEach(ctx, address)
	first := r.groups[0]
	r.addressResult = k.newResult(address, first.class.Envelope, first.header[0])
	for _, g := range r.groups {
		if err := k.notJudged(address, g.class.Envelope, g.header[0]); err != nil {
			return r, err
		}
		decided := verdict.Decide([]verdict.Finding{g.class.Envelope, g.header[0]}, g.class.Exempt)
		r.lists = max(r.lists, decided.Verdict.Action)
		if g.recipients != nil {
			shown := k.show(g, &decided)
			shown.Envelope, shown.Header = unnamed(g.class.Envelope), unnamed(g.header[0])
			r.ToEach = append(r.ToEach, shown)
		}
	}
	r.Action, r.Mixed, r.NotAsked = r.lists.String(), r.toAll.Mixed, k.unasked
	if r.ToEach != nil || k.asked.InHeader {
		r.Envelope = nil
	}
	if r.ToEach != nil {
		r.Header = nil
	}
	r.Doors, r.doors, err = k.doorsOn(ctx, address)
	return r, err
}

// pending reports whether another action would be taken if the sender is proven.
func (r *named) pending() bool {
	for _, g := range r.groups {
		for _, f := range []verdict.Finding{g.class.Envelope, g.header[0]} {
			if p := f.Verdict.Proved; p != nil && p.Action != f.Verdict.Action {
				return true
			}
		}
	}
	return false
}

// address returns what becomes of an address.
func (k *session) address(ctx context.Context, address string) (*Answer, error) {
	r, err := k.resultOfNamed(ctx, address)
	if err != nil {
		return nil, err
	}
	return k.answer(r.addressResult, r.lists, r.doors, func() { k.printNamed(&r) }), nil
}

// printNamed explains the result for an address.
func (k *session) printNamed(r *named) {
	headline := k.headline(r.Action, r.doors)
	if r.pending() {
		headline += ", unless the sender is proven"
	}
	fmt.Fprintf(k.out, "%s: %s\n", r.Address, headline)
	if k.exemptClient() {
		fmt.Fprintf(k.out, "  no sender is judged: the client %v is in policy.exempt_clients\n", k.asked.Client)
		return
	}
	k.printUnasked()
	for _, g := range r.groups {
		decided := verdict.Decide([]verdict.Finding{g.class.Envelope, g.header[0]}, g.class.Exempt)
		k.printGroup(g, decided.Verdict.Action.String())
		k.printBoth(r.Address, g)
	}
	if len(r.groups) > 1 {
		k.printToAll(r.toAll)
	}
	k.printAnswers()
	k.printDoors(r.Doors)
}

// printBoth explains what becomes of an address as envelope sender and in the header.
func (k *session) printBoth(address string, g *group) {
	envelope, header := g.class.Envelope, g.header[0]
	if k.asked.InHeader {
		k.explain("header", header, verdict.Header, g)
		return
	}
	k.explain("envelope", envelope, verdict.Envelope, g)
	if strings.IndexFunc(address, func(r rune) bool { return r > '~' }) >= 0 {
		fmt.Fprintf(k.out, "  %-9s as written here it is refused with 553 5.6.7: SMTPUTF8 is not offered\n", "")
	}
	if sameVerdict(envelope.Verdict, header.Verdict) || address == "<>" {
		return
	}
	k.explain("header", header, verdict.Header, g)
}

// printToAll prints what becomes of a message to all recipients with the address in its header,
// if it is not the same for each of them.
func (k *session) printToAll(c *smtpfilter.Conclusion) {
	switch {
	case c.Mixed:
		term.PrintWrapped(k.out, "in the header of a message to all: ", `refused for all (mixed_headers = "refuse")`)
	case len(c.Tags) > 0:
		term.PrintWrapped(k.out, "in the header of a message to all: ", "tagged for all, "+smtpfilter.TagField+": "+strings.Join(c.Tags, ", and one: "))
	}
}
