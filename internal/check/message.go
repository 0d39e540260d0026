package check

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"spamgate/blocklist/verdict"
	"spamgate/internal/term"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/header"
	"spamgate/smtpfilter/wire"
)

// messageResult is the output for a message.
type messageResult struct {
	Action   string       `json:"action"`            // of the message to all recipients: the strictest
	Pending  bool         `json:"pending,omitempty"` // another action if the sender is proven
	Decided  *finding     `json:"decided,omitempty"` // by this one
	Exempt   bool         `json:"exempt,omitempty"`  // all recipients are reachable by every sender
	Reply    string       `json:"reply,omitempty"`
	Mixed    bool         `json:"mixed,omitempty"`     // refused for all, although some recipients would take it
	ToEach   []shownGroup `json:"to_each,omitempty"`   // what a message to each of the recipients gets
	Tags     []string     `json:"tags,omitempty"`      // the contents of its X-Spamgate fields, if it is delivered
	NotAsked []string     `json:"not_asked,omitempty"` // lists by recipient, if no recipient is given
	Findings []finding    `json:"findings"`            // for the first recipient
	Proofs   *shownProofs `json:"proofs,omitempty"`
	Empty    []string     `json:"fields_without_address,omitempty"`
	Asked    []dnsAnswer  `json:"asked,omitempty"` // what lists in DNS said

	Doors []doorResult `json:"doors,omitempty"` // policy services and milters
}

// message returns what becomes of a whole message.
func (k *session) message(ctx context.Context, message io.Reader, q MessageQuestion) (*Answer, error) {
	in, err := k.readMessage(ctx, message, q)
	if err != nil {
		return nil, err
	}
	r, judged, err := k.resultOfMessage(ctx, in)
	if err != nil {
		return nil, err
	}
	doors := verdict.Accept
	if r.Doors, doors, err = k.doorsOnMessage(ctx, in); err != nil {
		return nil, err
	}
	return k.answer(r, judged.worst, doors, func() {
		k.printMessage(k.headline(r.Action, doors), r, judged)
		k.printDoors(r.Doors)
	}), nil
}

// messageIn is a message to judge.
type messageIn struct {
	name    string
	section []byte // the header
	nextHop []string
	from    string
	judged  bool  // there is an envelope sender to judge
	fault   error // of its bytes or its size, see wire

	signatures []verdict.Signature // verified, if proofs are shown
	fromFields int
}

// readMessage reads a message, for a listener to its end.
func (k *session) readMessage(ctx context.Context, message io.Reader, q MessageQuestion) (in messageIn, err error) {
	in = messageIn{name: q.Name, nextHop: q.NextHop}
	body := &mailText{in: bufio.NewReader(message), rules: k.bytes}
	text := bufio.NewReader(body)
	in.section, in.fault = k.readHeader(text, q.Name)
	whole := in.fault == nil
	if !whole && in.fault != wire.ErrHeaderTooLarge {
		return in, in.fault
	}
	in.from, in.judged = returnPath(in.section, q.From)
	if whole && k.showsProofs() {
		in.signatures, in.fromFields, err = k.verify(ctx, in.section, text)
	}
	if whole && !k.byDoors && err == nil {
		if _, err = io.Copy(io.Discard, text); err != nil {
			err = fmt.Errorf("%s: %w", k.argument("message"), err)
		}
	}
	in.fault = cmp.Or(body.fault, in.fault)
	return in, err
}

// judgedMessage is a message with what was found about it.
type judgedMessage struct {
	messageIn
	facts      verdict.Message
	classes    smtpfilter.Classes
	groups     []*group
	accepted   []*group // those whose RCPT is not refused
	headerSeen bool
	end        smtpfilter.Conclusion
	decided    verdict.Finding // the finding that decides, see decide
	worst      verdict.Action  // what becomes of the message, the strictest for any recipient
	ahead      bool            // the tags of end are written before the signatures are verified
	empty      []string        // fields without an address
	policy     *smtpfilter.Policy

	broken wire.Reply              // the refusal for its form, whoever the recipients are
	fault  *smtpfilter.HeaderFault // of its header, unless all recipients are exempt
}

// brokenReply returns the refusal of a message that nobody gets for its form. A mail server that
// asks a door has rules of its own.
func (k *session) brokenReply(in messageIn) wire.Reply {
	if k.byDoors && in.fault != wire.ErrHeaderTooLarge {
		return wire.Reply{}
	}
	if loop := k.policy.Loop(in.section); loop != nil && in.fault == nil {
		return loop.Reply("ID")
	}
	return k.policy.RefusalOfBytes(in.fault, k.bytes.most, "ID")
}

// refusalOf returns the refusal for its form that a message to some of the groups gets.
func (m *judgedMessage) refusalOf(groups ...*group) wire.Reply {
	accepts := func(g *group) bool { return slices.Contains(m.accepted, g) }
	judges := func(g *group) bool { return accepts(g) && m.policy.JudgesHeader(g.class.Envelope) }
	strict := func(g *group) bool { return accepts(g) && !g.class.Exempt }
	switch {
	case !slices.ContainsFunc(groups, accepts): // RCPT is refused, and nothing follows
	case !m.broken.IsZero():
		return m.broken
	case m.fault != nil && slices.ContainsFunc(groups, judges) && slices.ContainsFunc(groups, strict):
		return m.fault.Reply("ID")
	}
	return wire.Reply{}
}

// judgeMessage judges a message as far as a door sees it: the header is known or not.
func (k *session) judgeMessage(ctx context.Context, in messageIn, header bool) (*judgedMessage, error) {
	m := &judgedMessage{messageIn: in, facts: k.facts(in.from)}
	j, policy := k.newJudge(), k.policy
	if k.exemptClient() {
		j = nil
	}
	if !in.judged {
		policy.CheckBounces = true // else the header would be that of a bounce
	}
	m.classes.Begin(ctx, &policy, j, &m.facts)
	m.groups = groupsOf(ctx, &m.classes, k.recipients)
	for _, g := range m.groups {
		if !in.judged {
			g.class.Envelope = verdict.Finding{Identity: verdict.EnvelopeIdentity}
		}
		if err := g.class.Envelope.Err; err != nil {
			if !g.class.Envelope.NoAnswer() {
				return nil, fmt.Errorf("%s %q is not an address: %w", k.argument("from"), in.from, err)
			}
			return nil, fmt.Errorf("envelope %s: %w", in.from, err)
		}
		if !refusesRecipient(g.class) {
			m.accepted = append(m.accepted, g)
		}
	}
	m.policy = &policy
	if header {
		m.broken = k.brokenReply(in)
	}
	if header && j != nil {
		if err := k.judgeHeader(ctx, m, j, &policy); err != nil {
			return nil, err
		}
	}
	if m.ahead {
		m.decideWhole()
	} else {
		m.end = m.classes.Decide(classesOf(m.accepted))
	}
	return m, nil
}

// decideWhole decides about a message whose tags a listener has written before it knew whether
// the senders are proven.
func (m *judgedMessage) decideWhole() {
	tags, used := m.end.Tags, classesOf(m.accepted)
	if m.end = m.classes.Decide(used); m.end.Refuses() {
		return
	}
	if kept := slices.DeleteFunc(used, (*smtpfilter.Class).Dropped); len(kept) > 0 {
		pending := m.end.Pending
		m.end = m.classes.DecideWhole(kept, tags)
		m.end.Pending = pending
	}
}

// exemptClient reports whether the senders of the client of --client are not judged.
func (k *session) exemptClient() bool {
	return k.asked.Client.IsValid() && k.policy.ExemptClient(k.asked.Client)
}

// refusesRecipient reports whether RCPT is refused. One that a proof may save waits for it.
func refusesRecipient(class *smtpfilter.Class) bool {
	f := verdict.Decide([]verdict.Finding{class.Envelope}, class.Exempt)
	return f.Verdict.Action >= verdict.Defer && !f.Verdict.Pending
}

// judgeHeader judges the senders in the header, and decides with the proofs.
func (k *session) judgeHeader(ctx context.Context, m *judgedMessage, j verdict.Judge, policy *smtpfilter.Policy) error {
	used := classesOf(m.accepted)
	m.classes.ReadSignatures(ctx, m.section, used)
	senders := policy.ReadHeader(m.section, m.nextHop)
	m.classes.JudgeHeader(ctx, senders, used)
	if m.fault = senders.Fault(); m.fault == nil {
		m.empty = senders.FieldsWithoutAddress()
	}
	if m.end = m.classes.Decide(used); m.end.Pending && !k.byDoors {
		kept := slices.DeleteFunc(used, (*smtpfilter.Class).Dropped)
		m.ahead, m.end.Tags = true, m.classes.TagsAhead(kept)
	}
	used = classesOf(m.accepted)
	if k.showsProofs() && !k.asked.Offline {
		m.classes.Finish(ctx, m.signatures, used)
	}
	for _, g := range m.groups {
		if !policy.JudgesHeader(g.class.Envelope) {
			continue
		}
		senders := policy.ReadHeader(m.section, m.nextHop)
		for f := range policy.JudgeHeader(ctx, j, &m.facts, senders, g.class.For) {
			if f.NoAnswer() {
				return fmt.Errorf("%s %s: %w", f.Identity, f.Address, f.Err)
			}
			g.header = append(g.header, g.class.Applied(f))
		}
	}
	return nil
}

// decide sets what becomes of the message, and the finding that decides.
func (m *judgedMessage) decide() {
	decided := m.end.Finding
	if len(m.accepted) < len(m.groups) { // the refusal of a recipient is as strict as any
		for _, g := range m.groups {
			if f := m.outcome(g); !slices.Contains(m.accepted, g) && f.Verdict.Action > decided.Verdict.Action {
				decided = f
			}
		}
	}
	m.worst = decided.Verdict.Action
	if len(m.end.Tags) > 0 {
		m.worst = max(m.worst, verdict.Tag)
	}
	m.decided = decided
}

// outcome returns the finding that decides for a group whose recipients are the only ones.
func (m *judgedMessage) outcome(g *group) verdict.Finding {
	if !slices.Contains(m.accepted, g) {
		return verdict.Decide([]verdict.Finding{g.class.Envelope}, g.class.Exempt)
	}
	return m.classes.Decide([]*smtpfilter.Class{g.class}).Finding
}

// findings returns the findings for a group, that about the envelope sender first.
func (m *judgedMessage) findings(g *group) (all []verdict.Finding) {
	if m.judged {
		all = append(all, g.class.Envelope)
	}
	return append(all, g.header...)
}

// resultOfMessage judges a message.
func (k *session) resultOfMessage(ctx context.Context, in messageIn) (messageResult, *judgedMessage, error) {
	m, err := k.judgeMessage(ctx, in, true)
	if err != nil {
		return messageResult{}, nil, err
	}
	r := messageResult{Exempt: allExempt(m.groups), Findings: []finding{}, Empty: m.empty, Asked: k.answered()}
	for _, f := range m.findings(m.groups[0]) {
		r.Findings = append(r.Findings, newFinding(f))
	}
	m.decide()
	if r.Reply = k.replyTo(m, m.decided); !k.refusalOf(m, m.groups...).IsZero() {
		m.worst, m.end, m.decided = verdict.Reject, smtpfilter.Conclusion{}, verdict.Finding{} // no sender decides
		m.end.Finding.Verdict.Action = verdict.Reject
	}
	r.Action, r.Mixed = m.worst.String(), m.end.Mixed
	r.Pending, r.NotAsked = m.end.Pending, k.unasked
	if !m.end.Refuses() {
		r.Tags = m.end.Tags
	}
	if !m.decided.Verdict.Match.IsZero() {
		d := newFinding(m.decided)
		r.Decided = &d
	}
	for _, g := range m.groups {
		if g.recipients == nil {
			continue
		}
		shown := k.show(g, m.outcome(g))
		if reply := k.refusalOf(m, g); !reply.IsZero() {
			shown.Action, shown.Decided, shown.Reply = verdict.Reject, nil, reply.String()
		}
		r.ToEach = append(r.ToEach, shown)
	}
	if k.showsProofs() {
		r.Proofs = k.describeProofs(ctx, in, &m.facts, m.findings(m.groups[0]))
	}
	return r, m, nil
}

// refusalOf returns what refusalOf of the message does, at a listener. If doors decide, the session
// says what the lists say.
func (k *session) refusalOf(m *judgedMessage, groups ...*group) wire.Reply {
	if k.byDoors {
		return wire.Reply{}
	}
	return m.refusalOf(groups...)
}

// replyTo returns the reply to a message that is refused for its form, or that a finding refuses
// for all its recipients, or to the recipients that it refuses.
func (k *session) replyTo(m *judgedMessage, decided verdict.Finding) string {
	if refused := k.refusalOf(m, m.groups...); !refused.IsZero() {
		return refused.String()
	}
	if !m.end.Mixed {
		return k.policy.Refusal(decided, "ID").String()
	}
	return k.policy.RefusalForSome(m.end.Finding, "ID", m.refusing()).String()
}

// refusing returns the accepted recipients who do not want the message.
func (m *judgedMessage) refusing() (all []string) {
	for _, g := range m.accepted {
		if f := m.outcome(g); f.Verdict.Action >= verdict.Defer {
			all = append(all, g.recipients...)
		}
	}
	return all
}

func (k *session) printMessage(headline string, r messageResult, m *judgedMessage) {
	if m.end.Pending {
		headline += ", unless the sender is proven"
	}
	fmt.Fprintf(k.out, "%s: %s\n", m.name, headline)
	if r.Reply != "" && !k.byDoors {
		fmt.Fprintf(k.out, "  the client hears: %s\n", r.Reply)
	}
	k.printMixed(m)
	k.printTags(m)
	k.printUnasked()
	if r.Exempt {
		fmt.Fprintf(k.out, "  reachable by every sender: %s\n", strings.Join(k.asked.Recipients, ", "))
	}
	if k.exemptClient() {
		fmt.Fprintf(k.out, "  no sender is judged: the client %v is in policy.exempt_clients\n", k.asked.Client)
		return
	}
	if !m.judged {
		fmt.Fprintln(k.out, "  envelope sender unknown, not judged: give "+k.argument("from"))
	}
	for _, g := range m.groups {
		action := m.outcome(g).Verdict.Action
		if !k.refusalOf(m, g).IsZero() {
			action = verdict.Reject
		}
		k.printGroup(g, action.String())
		k.printFindings(m, g)
	}
	k.printMessageProofs(r.Proofs)
	for _, field := range r.Empty {
		fmt.Fprintf(k.out, "%s: a field without an address\n", field)
	}
	k.printAnswers()
}

// printMixed prints what becomes of a message that some of its recipients take, and others do
// not because of its header.
func (k *session) printMixed(m *judgedMessage) {
	refusing := m.refusing()
	switch {
	case m.end.Mixed && k.policy.MixedHeaders == smtpfilter.MixedTag && m.ahead:
		term.PrintWrapped(k.out, "  ", `refused for all, since `+strings.Join(refusing, ", ")+` may not get it: the tag of mixed_headers = "tag" would come too late, after the signature is verified`)
	case m.end.Mixed:
		term.PrintWrapped(k.out, "  ", `refused for all, since `+strings.Join(refusing, ", ")+` may not get it: mixed_headers = "refuse" in [policy]`)
	case len(refusing) > 0 && !m.end.Refuses():
		term.PrintWrapped(k.out, "  ", `tagged for all, since `+strings.Join(refusing, ", ")+` may not get it as it is: mixed_headers = "tag" in [policy]`)
	}
}

// printTags prints the tags of a message that a listener delivers. A door has its own, see
// printDoors.
func (k *session) printTags(m *judgedMessage) {
	if m.end.Refuses() || k.byDoors {
		return
	}
	for _, tag := range m.end.Tags {
		term.PrintWrapped(k.out, "  ", smtpfilter.TagField+": "+tag)
	}
	if m.ahead && len(m.end.Tags) > 0 {
		term.PrintWrapped(k.out, "  ", "(written before a signature was verified: a listener cannot take it back)")
	}
}

// printFindings prints all findings for a group.
func (k *session) printFindings(m *judgedMessage, g *group) {
	for i, f := range m.findings(g) {
		stage := verdict.Header
		if m.judged && i == 0 {
			stage = verdict.Envelope
		}
		address := cmp.Or(f.Address, "<>")
		switch f.Form {
		case "":
		case address:
			address += ", which some readers may take for the sender"
		default:
			address = fmt.Sprintf("%q, which servers may read as %s", f.Form, address)
		}
		fmt.Fprintf(k.out, "%s %s: %s\n", f.Identity, address, f.Verdict.Action)
		if f.Err != nil {
			fmt.Fprintf(k.out, "  not understood, not looked up: %v\n", f.Err)
			continue
		}
		if f.Form != "" && f.Verdict.Match.IsZero() && len(f.Verdict.Monitored) == 0 {
			fmt.Fprintf(k.out, "  %-9s no block list matches, whatever servers make of it\n", "")
			continue
		}
		k.explain("", f, stage, g)
	}
	if m.judged && len(g.header) == 0 && len(k.policy.HeaderFields) > 0 && !k.policy.JudgesHeader(g.class.Envelope) {
		why := "an overriding allow list knows the envelope sender"
		if g.class.Envelope.Address == "" {
			why = "the null sender's are not, unless headers.check_bounces = true"
		}
		fmt.Fprintf(k.out, "the header's senders are not judged: %s\n", why)
	}
}

// returnPath returns the envelope sender, and whether there is one to judge: from, or else that
// of the Return-Path field.
func returnPath(section []byte, from *string) (path string, judged bool) {
	if from != nil {
		if *from == "<>" {
			return "", true
		}
		return *from, true
	}
	const field = "Return-Path"
	found := header.Senders(section, []string{field})
	if len(found.Senders) > 0 {
		return found.Senders[0].Address, true
	}
	return "", len(found.Empty) > 0 // Return-Path: <>
}

// readHeader reads a message's header section, and the empty line after it. A header that is too
// large is wire.ErrHeaderTooLarge. The line with which a mailbox file begins a message ("From
// a@b.example Mon Jan …") stays: the gate takes it for a field of another name, too.
func (k *session) readHeader(text *bufio.Reader, name string) ([]byte, error) {
	argument, limit := k.argument("message"), k.policy.HeaderLimit()
	var section []byte
	for {
		line, err := readLine(text, limit)
		switch {
		case err != nil && err != io.EOF:
			return nil, fmt.Errorf("%s: %w", argument, err)
		case len(section)+len(line) > limit:
			return section, wire.ErrHeaderTooLarge
		case len(section)+len(line) == 0:
			return nil, fmt.Errorf("%s: %s is empty", argument, name)
		case string(line) == "\r\n" || len(line) == 0:
			return section, nil
		}
		section = append(section, line...)
	}
}

// readLine reads a line with its end, or as much of it as goes beyond the limit.
func readLine(text *bufio.Reader, limit int) (line []byte, err error) {
	for len(line) <= limit {
		piece, err := text.ReadSlice('\n')
		line = append(line, piece...)
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
	return line, nil
}
