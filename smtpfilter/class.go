package smtpfilter

import (
	"context"
	"slices"
	"strings"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/header"
)

// Classes judges the senders of one message for its recipients. Recipients for whom the same
// counts are one class, so that a message is judged once for most of them. The zero Classes is
// not valid; see Begin.
type Classes struct {
	policy  *Policy
	judge   verdict.Judge // nil if the client is exempt
	message *verdict.Message
	senders *HeaderSenders // nil before the header

	plain Class             // of recipients without a say
	more  map[string]*Class // the others, by what counts for them
}

// Class is what counts for some recipients, and what the lists say of the senders for them.
type Class struct {
	// Rule is the rule of the policy for the recipients; nil if there is none.
	Rule *RecipientRule

	// Exempt says that the recipients are reachable by every sender.
	Exempt bool

	// For is what their Judge is asked with.
	For verdict.For

	// Envelope is the finding about the reverse-path, Header are the findings in the header
	// that decide.
	Envelope verdict.Finding
	Header   []verdict.Finding
}

// Begin begins a message: it judges the reverse-path for recipients without a say. The Judge is
// nil if the client is exempt.
func (c *Classes) Begin(ctx context.Context, p *Policy, j verdict.Judge, m *verdict.Message) {
	*c = Classes{}
	c.policy, c.judge, c.message = p, j, m
	c.judgeEnvelope(ctx, &c.plain)
}

// SetJudge sets who judges from now on, for a door that remembers a message longer than the
// lists of its beginning.
func (c *Classes) SetJudge(j verdict.Judge) { c.judge = j }

// Forget forgets the classes beside that of recipients without a say, if they are more than n.
func (c *Classes) Forget(n int) {
	if len(c.more) > n {
		c.more = nil
	}
}

// Plain returns the class of recipients without a say.
func (c *Classes) Plain() *Class { return &c.plain }

// MaxClasses bounds the classes of a message that are remembered. Those beyond are judged for
// each recipient.
const MaxClasses = 1000

// Of returns the class of a recipient. It judges the reverse-path for a new one.
func (c *Classes) Of(ctx context.Context, rcpt verdict.Recipient) *Class {
	if Ambiguous(rcpt) {
		of, err := c.sayOfAmbiguous(rcpt)
		return c.known(ctx, &of, err)
	}
	rule := c.policy.RuleOf(rcpt)
	of := say{rule: rule, exempt: c.policy.ExemptRecipient(rcpt) || rule != nil && rule.Exempt}
	if rule != nil {
		of.to.Lists = rule.Lists
	}
	var err error
	if j, ok := c.judge.(verdict.RecipientJudge); ok {
		of.to.Keys, err = j.KeysOf(rcpt)
	}
	return c.known(ctx, &of, err)
}

// say is what counts for recipients: their class before it is judged.
type say struct {
	rule   *RecipientRule
	exempt bool
	to     verdict.For
}

// known returns the class of recipients, which is judged if it is new. The error says that the
// lists could not be asked about the recipient.
func (c *Classes) known(ctx context.Context, of *say, err error) *Class {
	if of.rule == nil && !of.exempt && of.to.Keys == nil && of.to.Others == nil && err == nil {
		return &c.plain
	}
	return c.other(ctx, of, err)
}

// other returns the class of recipients that have a say, or are exempt.
func (c *Classes) other(ctx context.Context, of *say, err error) *Class {
	key := of.key()
	if known := c.more[key]; known != nil && err == nil {
		return known
	}
	class := &Class{Rule: of.rule, Exempt: of.exempt, For: of.to, Envelope: c.plain.Envelope}
	if err != nil {
		class.Envelope.Verdict, class.Envelope.Err = verdict.Verdict{Action: verdict.Defer}, err
		return class // and the next attempt asks again
	}
	if of.rule != nil || of.to.Keys != nil || of.to.Others != nil {
		c.judgeEnvelope(ctx, class)
	}
	if c.more == nil {
		c.more = map[string]*Class{}
	}
	if len(c.more) < MaxClasses {
		c.more[key] = class
	}
	return class
}

// key returns what tells classes apart. No name of a rule and no key of a recipient has a line
// feed.
func (s *say) key() string {
	name := ""
	if s.rule != nil {
		name = s.rule.Name
	}
	exempt := ""
	if s.exempt {
		exempt = "exempt"
	}
	return name + "\n" + exempt + "\n" + keysText(&s.to)
}

// judgeEnvelope judges the reverse-path for a class.
func (c *Classes) judgeEnvelope(ctx context.Context, class *Class) {
	if c.judge == nil {
		class.Envelope = verdict.Finding{Identity: verdict.EnvelopeIdentity, Address: c.message.ReversePath}
		return
	}
	a := asker{ctx, c.judge, c.message, &class.For}
	a.judgeEnvelope(&class.Envelope)
	class.apply(&class.Envelope)
}

// Applied returns a finding as it counts for the class.
func (c *Class) Applied(f verdict.Finding) verdict.Finding {
	c.apply(&f)
	return f
}

// apply makes of a finding what counts for the class.
func (c *Class) apply(f *verdict.Finding) {
	if c.Rule == nil {
		return
	}
	f.Policy = c.Rule.Name
	switch {
	case f.Err != nil:
	case c.Exempt: // what refuses other mail counts for nothing, so that a bound must not make a tag of it
		unbounded := RecipientRule{Monitor: c.Rule.Monitor}
		unbounded.apply(&f.Verdict)
	default:
		c.Rule.apply(&f.Verdict)
	}
}

// unique returns each of the classes once.
func unique(used []*Class) []*Class {
	alike := 0
	for alike < len(used) && used[alike] == used[0] {
		alike++
	}
	if alike == len(used) {
		return used[:min(1, alike)] // as for nearly every message
	}
	var classes []*Class
	for _, class := range used {
		if !slices.Contains(classes, class) {
			classes = append(classes, class)
		}
	}
	return classes
}

// JudgesHeader reports whether the header is judged for any of the classes.
func (c *Classes) JudgesHeader(used []*Class) bool {
	return c.judge != nil && slices.ContainsFunc(used, func(class *Class) bool { return c.policy.judgesHeader(&class.Envelope) })
}

// ReadSignatures notes what a header section says of proofs, and judges the reverse-path again
// where it depends on them. It does nothing if no list asks for proofs.
func (c *Classes) ReadSignatures(ctx context.Context, section []byte, used []*Class) {
	if j, ok := c.judge.(verdict.ProofJudge); !ok || j.Proofs() == 0 {
		return
	}
	c.message.HeaderKnown = true
	c.message.Signatures, c.message.FromFields = header.Signatures(section)
	c.judgePending(ctx, unique(used))
}

// judgePending judges the reverse-path again for the classes for which it is pending.
func (c *Classes) judgePending(ctx context.Context, classes []*Class) {
	for _, class := range classes {
		if class.Envelope.Verdict.Pending {
			c.judgeEnvelope(ctx, class)
		}
	}
}

// JudgeHeader judges the senders in a header for the classes of the recipients, see
// [Policy.JudgeHeader]. It returns the findings for all of them, for the log.
func (c *Classes) JudgeHeader(ctx context.Context, senders *HeaderSenders, used []*Class) HeaderFindings {
	var all HeaderFindings
	c.judgeSenders(ctx, senders, used, &all)
	return all
}

// judgeSenders adds to all what JudgeHeader returns.
func (c *Classes) judgeSenders(ctx context.Context, senders *HeaderSenders, used []*Class, all *HeaderFindings) {
	c.senders = senders
	classes := unique(used)
	for _, class := range classes {
		class.Header = nil
	}
	c.judgeHeader(ctx, classes, all)
}

// judgeHeader judges the senders in the header. If that becomes too costly, the classes that
// were not judged to the end keep the findings that they had.
func (c *Classes) judgeHeader(ctx context.Context, classes []*Class, all *HeaderFindings) {
	if len(classes) == 1 { // as for nearly every message
		class := classes[0]
		if c.policy.judgesHeader(&class.Envelope) {
			c.senders.begin(0)
			for f := range c.policy.judgeHeader(ctx, c.judge, c.message, c.senders, &class.For) {
				class.apply(f)
				all.add(f)
			}
			if !c.senders.TooMany() {
				class.Header = all.Deciding
			}
		}
		return
	}
	for i, alike := range c.groups(classes) {
		c.senders.begin(i)
		c.judgeAlike(ctx, alike, all, i == 0)
		if c.senders.TooMany() {
			return
		}
	}
}

// judgeAlike judges the senders in a header for classes for which the Judge says the same. All
// gets the findings of the first class of the first ones, and what monitors for the others.
func (c *Classes) judgeAlike(ctx context.Context, alike []*Class, all *HeaderFindings, first bool) {
	summaries := make([]HeaderFindings, len(alike))
	for f := range c.policy.judgeHeader(ctx, c.judge, c.message, c.senders, &alike[0].For) {
		for k, class := range alike {
			of := *f
			class.apply(&of)
			summaries[k].add(&of)
			if first && k == 0 {
				all.add(&of)
			} else {
				all.monitor(&of)
			}
		}
	}
	if c.senders.TooMany() {
		return
	}
	for k, class := range alike {
		class.Header = summaries[k].Deciding
	}
}

// groups returns the classes whose header is judged, those together for which the Judge says
// the same.
func (c *Classes) groups(classes []*Class) [][]*Class {
	var groups [][]*Class
	index := map[string]int{}
	for _, class := range classes {
		if !c.policy.judgesHeader(&class.Envelope) {
			continue
		}
		key := keysText(&class.For)
		if class.For.Lists != nil {
			key += "\n\n" + strings.Join(class.For.Lists, "\n")
		}
		i, ok := index[key]
		if !ok {
			i = len(groups)
			index[key], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], class)
	}
	return groups
}

// Awaited returns the domains of the signatures on which the decision may depend.
func (c *Classes) Awaited(used []*Class) []string {
	var domains []string
	for _, class := range unique(used) {
		for _, f := range class.findings() {
			if !f.Verdict.Pending {
				continue
			}
			for _, p := range f.Verdict.Proofs {
				domains = append(domains, p.Domains...)
			}
		}
	}
	slices.Sort(domains)
	return slices.Compact(domains)
}

// Finish judges again what is pending, once the whole message is known, and with it which of its
// signatures are valid.
func (c *Classes) Finish(ctx context.Context, signatures []verdict.Signature, used []*Class) {
	c.message.BodyKnown, c.message.Signatures = true, signatures
	classes := unique(used)
	c.judgePending(ctx, classes)
	var again []*Class
	for _, class := range classes {
		switch {
		case class.Envelope.Verdict.ClearsMessage:
			class.Header = nil
		case anyPending(class.Header):
			again = append(again, class)
		}
	}
	if again != nil {
		c.judgeHeader(ctx, again, new(HeaderFindings))
	}
}
