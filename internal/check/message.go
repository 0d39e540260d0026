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
	smtpfilter.Judgement
	groups     []*group
	headerSeen bool
	end        smtpfilter.Conclusion
	decided    *verdict.Finding // the finding that decides, see decide
	worst      verdict.Action   // what becomes of the message, the strictest for any recipient
	ahead      bool             // the tags of end are written before the signatures are verified
	empty      []string         // fields without an address
	broken     wire.Reply       // the refusal for its form, whoever the recipients are
	listsOnly  bool             // its form does not count: doors decide, and the session says what the lists say
}

// begin judges the envelope for the recipients, by what counts for them; without recipients for those
// who have no say.
func (m *judgedMessage) begin(ctx context.Context, lists lists, authenticated bool, recipients []verdict.Recipient) {
	m.Begin(ctx, lists, authenticated)
	if len(recipients) == 0 {
		m.add(m.Plain(), verdict.Recipient{})
	}
	for _, r := range recipients {
		g := m.add(m.Recipient(r), r)
		g.recipients = append(g.recipients, r.Path)
	}
}

// add adds a recipient to the group of its class.
func (m *judgedMessage) add(class *smtpfilter.Class, r verdict.Recipient) *group {
	if !m.judged {
		class.Envelope = verdict.Finding{Identity: verdict.EnvelopeIdentity}
	}
	i := slices.IndexFunc(m.groups, func(g *group) bool { return g.class == class })
	if i < 0 {
		i = len(m.groups)
		m.groups = append(m.groups, &group{class: class, refused: class.AtRCPT().Verdict.Action >= verdict.Defer})
	}
	if !m.groups[i].refused {
		m.Take(r, class)
	}
	return m.groups[i]
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
	var used []*smtpfilter.Class
	for _, g := range groups {
		if !g.refused {
			used = append(used, g.class)
		}
	}
	switch fault := m.Fault(used...); {
	case used == nil, m.listsOnly: // RCPT is refused, and nothing follows
	case !m.broken.IsZero():
		return m.broken
	case fault != nil:
		return fault.Reply("ID")
	}
	return wire.Reply{}
}

// judgeMessage judges a message as far as a door sees it: the header is known or not.
func (k *session) judgeMessage(ctx context.Context, in messageIn, header bool) (*judgedMessage, error) {
	policy := k.policy
	policy.CheckBounces = policy.CheckBounces || !in.judged // else the header would be that of a bounce
	m := &judgedMessage{messageIn: in, Judgement: smtpfilter.Judgement{Policy: &policy, Message: k.facts(in.from)}}
	m.begin(ctx, k.newJudge, false, k.recipients)
	for _, g := range m.groups {
		switch f := &g.class.Envelope; {
		case f.NoAnswer():
			return nil, fmt.Errorf("envelope %s: %w", in.from, f.Err)
		case f.Err != nil:
			return nil, fmt.Errorf("%s %q is not an address: %w", k.argument("from"), in.from, f.Err)
		}
	}
	if header {
		m.broken = k.brokenReply(in)
		if err := k.judgeHeader(ctx, m); err != nil {
			return nil, err
		}
	}
	m.end = *m.Decide()
	return m, nil
}

// exemptClient reports whether the senders of the client of --client are not judged.
func (k *session) exemptClient() bool {
	return k.asked.Client.IsValid() && k.policy.ExemptClient(k.asked.Client)
}

// judgeHeader judges the senders in the header, as far as the end of the message with its signatures.
func (k *session) judgeHeader(ctx context.Context, m *judgedMessage) error {
	names := func() []string { return m.nextHop }
	m.Header(m.section, names, new(smtpfilter.HeaderFindings))
	if m.Decide().Pending && !k.byDoors {
		m.ahead = true
		m.Ahead()
	}
	if k.showsProofs() && !k.asked.Offline {
		m.Finish(m.signatures)
	}
	for _, g := range m.groups {
		if !m.JudgesHeader(g.class) {
			continue
		}
		senders := m.Policy.ReadHeader(m.section, m.nextHop)
		for f := range m.Policy.JudgeHeader(ctx, m.Judge, &m.Message, senders, &g.class.For) {
			if f.NoAnswer() {
				return fmt.Errorf("%s %s: %w", f.Identity, f.Address, f.Err)
			}
			g.class.Apply(f)
			g.header = append(g.header, *f)
		}
		if senders.Fault() == nil {
			m.empty = senders.FieldsWithoutAddress()
		}
	}
	return nil
}

// decide sets what becomes of the message, and the finding that decides: the refusal of a recipient is
// as strict as any.
func (m *judgedMessage) decide() {
	m.decided = m.end.Finding
	for _, g := range m.groups {
		if f := m.outcome(g); g.refused && f.Verdict.Action > m.decided.Verdict.Action {
			m.decided = f
		}
	}
	m.worst = m.decided.Verdict.Action
	if len(m.end.Tags) > 0 {
		m.worst = max(m.worst, verdict.Tag)
	}
}

// outcome returns the finding that decides for a group whose recipients are the only ones.
func (m *judgedMessage) outcome(g *group) *verdict.Finding { return m.For(g.class).Finding }

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
	m.listsOnly = k.byDoors
	refusal := m.refusalOf(m.groups...)
	switch {
	case !refusal.IsZero(): // no sender decides
		m.worst, m.decided = verdict.Reject, new(verdict.Finding)
		m.end = smtpfilter.Conclusion{Finding: &verdict.Finding{Verdict: verdict.Verdict{Action: verdict.Reject}}}
	case m.end.Mixed:
		refusal = k.policy.Refusal(m.end.Finding, "ID", m.refusing()...)
	default:
		refusal = k.policy.Refusal(m.decided, "ID")
	}
	r.Reply = refusal.String()
	r.Action, r.Mixed = m.worst.String(), m.end.Mixed
	r.Pending, r.NotAsked = m.end.Pending, k.unasked
	if !m.end.Refuses() {
		r.Tags = m.end.Tags
	}
	if !m.decided.Verdict.Match.IsZero() {
		d := newFinding(*m.decided)
		r.Decided = &d
	}
	for _, g := range m.groups {
		if g.recipients == nil {
			continue
		}
		shown := k.show(g, m.outcome(g))
		if reply := m.refusalOf(g); !reply.IsZero() {
			shown.Action, shown.Decided, shown.Reply = verdict.Reject, nil, reply.String()
		}
		r.ToEach = append(r.ToEach, shown)
	}
	if k.showsProofs() {
		r.Proofs = k.describeProofs(ctx, in, &m.Message, m.findings(m.groups[0]))
	}
	return r, m, nil
}

// only returns the recipients who refuse a message that others take, if it is refused for all.
func (m *judgedMessage) only() []string {
	if m.end.Mixed {
		return m.refusing()
	}
	return nil
}

// refusing returns the recipients who refuse a message that others take.
func (m *judgedMessage) refusing() (all []string) {
	refuses := m.Refusing()
	for _, g := range m.groups {
		if !g.refused && refuses(g.class) {
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
		if !m.refusalOf(g).IsZero() {
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
	tagged, action, _ := m.Shown()
	switch {
	case m.end.Mixed && k.policy.MixedHeaders == smtpfilter.MixedTag && m.ahead:
		term.PrintWrapped(k.out, "  ", `refused for all, since `+strings.Join(refusing, ", ")+` may not get it: the tag of mixed_headers = "tag" would come too late, after the signature is verified`)
	case m.end.Mixed:
		term.PrintWrapped(k.out, "  ", `refused for all, since `+strings.Join(refusing, ", ")+` may not get it: mixed_headers = "refuse" in [policy]`)
	case tagged.Verdict.Action > action && action == verdict.Tag && !m.end.Refuses():
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
	if m.judged && len(g.header) == 0 && len(k.policy.HeaderFields) > 0 && !m.JudgesHeader(g.class) {
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
