package smtpfilter

import (
	"bytes"
	"context"
	"slices"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/header"
)

// Judgement judges one message, part by part as they come. It is the order of the rules, which the
// proxy, the other doors and "spamgate check" all follow:
//
//	Begin      connect, HELO and MAIL: is the client exempt, and what do the lists say of the reverse-path?
//	Recipient  RCPT: what counts for this recipient? Class.AtRCPT decides.
//	Take       the recipient gets the message, as far as is known
//	Header     the senders in the header
//	Decide     what becomes of the message; again after Finish
//	Ahead      the tags of a message that goes on before its signatures are known
//	Finish     the end of the message, with its signatures
//
// It has no clock, and does no I/O but what its Judge does. One goroutine at a time may use it.
type Judgement struct {
	Policy  *Policy         // set before Begin
	Message verdict.Message // what is known of the message; that of MAIL is set before Begin

	Judge  verdict.Judge // nil if the client is exempt
	Exempt string        // why it is: "client", "authenticated"

	ctx     context.Context
	senders *HeaderSenders // nil if the header is not judged
	fault   *HeaderFault   // of its form

	plain Class             // of recipients without a say
	more  map[string]*Class // the others, by what counts for them

	// The classes of the recipients that were taken, each once, and those for whom the message
	// is dropped.
	taken, dropped []*Class
	first          [1]*Class // of taken: mostly there is one

	decided  Conclusion
	ahead    bool    // the message has gone on, with the tags of decided
	observed []place // of the entries about the reverse-path that only monitor
}

// Begin begins the message of a client, and judges the reverse-path for recipients without a say.
// The Judge of the present lists judges all of the message.
func (j *Judgement) Begin(ctx context.Context, lists verdict.Checker, authenticated bool) {
	j.ctx = ctx
	switch {
	case j.Policy.ExemptClient(j.Message.Client.Addr()):
		j.Exempt = "client"
	case j.Policy.ExemptAuthenticated && authenticated:
		j.Exempt = "authenticated"
	default:
		j.Judge = lists.Judge()
	}
	j.judgeEnvelope(&j.plain)
}

// Misread returns why the reverse-path is not an address, or nil. The lists cannot be asked about
// it, so that it is refused.
func (j *Judgement) Misread() error {
	if f := &j.plain.Envelope; !noAnswer(f) {
		return f.Err
	}
	return nil
}

// Plain returns the class of recipients without a say.
func (j *Judgement) Plain() *Class { return &j.plain }

// Forget forgets the classes beside that of recipients without a say, if they are more than n.
func (j *Judgement) Forget(n int) {
	if len(j.more) > n {
		j.more = nil
	}
}

// MaxClasses bounds the classes of a message that are remembered. Those beyond are judged for
// each recipient.
const MaxClasses = 1000

// Recipient returns the class of a recipient. It judges the reverse-path for a new one.
func (j *Judgement) Recipient(rcpt verdict.Recipient) *Class {
	if Ambiguous(rcpt) {
		finder, err := j.sayOfAmbiguous(rcpt)
		return j.known(&finder, err)
	}
	rule := j.Policy.RuleOf(rcpt)
	finder := say{rule: rule, exempt: j.Policy.ExemptRecipient(rcpt) || rule != nil && rule.Exempt}
	if rule != nil {
		finder.to.Lists = rule.Lists
	}
	var err error
	if keeper, ok := j.Judge.(verdict.RecipientJudge); ok {
		finder.to.Keys, err = keeper.KeysOf(rcpt)
	}
	return j.known(&finder, err)
}

// known returns the class of recipients, which is judged if it is new. The error says that the
// lists could not be asked about the recipient.
func (j *Judgement) known(finder *say, err error) *Class {
	if finder.rule == nil && !finder.exempt && finder.to.Keys == nil && finder.to.Others == nil && err == nil {
		return &j.plain
	}
	key := finder.key()
	if known := j.more[key]; known != nil && err == nil {
		return known
	}
	class := &Class{Rule: finder.rule, Exempt: finder.exempt, For: finder.to, Envelope: j.plain.Envelope}
	if err != nil {
		class.Envelope.Verdict, class.Envelope.Err = verdict.Verdict{Action: verdict.Defer}, err
		return class // and the next attempt asks again
	}
	if finder.rule != nil || finder.to.Keys != nil || finder.to.Others != nil {
		j.judgeEnvelope(class)
	}
	if j.more == nil {
		j.more = map[string]*Class{}
	}
	if len(j.more) < MaxClasses {
		j.more[key] = class
	}
	return class
}

// judgeEnvelope judges the reverse-path for a class.
func (j *Judgement) judgeEnvelope(class *Class) {
	f := &class.Envelope
	*f = verdict.Finding{Identity: verdict.EnvelopeIdentity, Address: j.Message.ReversePath}
	if j.Judge == nil {
		return
	}
	a := asker{j.ctx, j.Judge, &j.Message, &class.For}
	a.ask(&verdict.Query{Stage: verdict.Envelope, Address: f.Address}, f)
	class.Apply(f)
}

// Take notes that a recipient is accepted, whose class is this one.
func (j *Judgement) Take(rcpt verdict.Recipient, class *Class) {
	j.Message.Recipients = append(j.Message.Recipients, rcpt)
	switch {
	case class.taken:
		return
	case class.AtRCPT().Verdict.Action.Drops():
		class.Dropped = true
		j.dropped = append(j.dropped, class)
	case j.taken == nil:
		j.taken = append(j.first[:0], class)
	default:
		j.taken = append(j.taken, class)
	}
	class.taken = true
}

// Full reports whether no recipient of another class can be taken, for a door that does not bound
// recipients itself.
func (j *Judgement) Full(class *Class) bool {
	return !class.taken && len(j.taken)+len(j.dropped) >= MaxClasses
}

// Used returns the classes of the recipients that were taken, each once.
func (j *Judgement) Used() []*Class {
	switch {
	case len(j.dropped) == 0:
		return j.taken
	case len(j.taken) == 0:
		return j.dropped
	}
	return slices.Concat(j.taken, j.dropped)
}

// Monitored returns the entries about the reverse-path that only monitor, for a class, without those
// that it has returned before.
func (j *Judgement) Monitored(class *Class) []verdict.Finding {
	if v := &class.Envelope.Verdict; v.Pending || v.Monitored == nil {
		return nil
	}
	f := class.Envelope
	f.Verdict.Monitored = fresh(&j.observed, f.Verdict.Monitored)
	return []verdict.Finding{f}
}

// Header judges the senders in a header section, which is without dot-stuffing: every address, and
// what servers may make of the text. NextHop returns the names by which the next hop may complete
// addresses. All gets what the log needs.
func (j *Judgement) Header(section []byte, nextHop func() []string, all *HeaderFindings) {
	section = bytes.TrimSuffix(section, []byte("\r\n"))
	used := j.Used()
	if j.Judge != nil && j.Misread() == nil {
		j.readSignatures(section, used)
		if slices.ContainsFunc(used, j.JudgesHeader) {
			j.judgeSenders(j.Policy.ReadHeader(section, nextHop()), used, all)
			return
		}
	}
	all.MessageID = header.Senders(section, nil).MessageID
}

// JudgesHeader reports whether the header is judged for a class. That of a bounce is not, without
// CheckBounces, since a bounce must reach the sender of its message. Nor is that of a message that
// an overriding allow list has cleared.
func (j *Judgement) JudgesHeader(class *Class) bool {
	return j.Judge != nil && len(j.Policy.HeaderFields) > 0 &&
		!class.Envelope.Verdict.ClearsMessage &&
		(class.Envelope.Address != "" || j.Policy.CheckBounces)
}

// readSignatures notes what a header section says of proofs, and judges the reverse-path again
// where it depends on them. It does nothing if no list asks for proofs.
func (j *Judgement) readSignatures(section []byte, used []*Class) {
	if prover, ok := j.Judge.(verdict.ProofJudge); !ok || prover.Proofs() == 0 {
		return
	}
	j.Message.HeaderKnown = true
	j.Message.Signatures, j.Message.FromFields = header.Signatures(section)
	j.judgePending(used)
}

// judgePending judges the reverse-path again for the classes for which it is pending.
func (j *Judgement) judgePending(classes []*Class) {
	for _, class := range classes {
		if class.Envelope.Verdict.Pending {
			j.judgeEnvelope(class)
		}
	}
}

// judgeSenders judges the senders in the header for the classes of all recipients.
func (j *Judgement) judgeSenders(senders *HeaderSenders, used []*Class, all *HeaderFindings) {
	j.senders = senders
	all.MessageID = senders.MessageID
	for _, class := range used {
		class.Header = nil
	}
	j.judgeHeader(used, all)
	j.fault = senders.Fault()
	if all.Fault = j.Fault(used...); all.Fault == nil {
		all.Empty = senders.FieldsWithoutAddress()
	}
}

// Fault returns why nobody of these classes gets the message, because of the form of its header, or
// nil. Recipients who are all reachable by every sender get it.
func (j *Judgement) Fault(used ...*Class) *HeaderFault {
	strict := func(class *Class) bool { return !class.Exempt }
	if slices.ContainsFunc(used, j.JudgesHeader) && slices.ContainsFunc(used, strict) {
		return j.fault
	}
	return nil
}

// Awaited returns the domains of the signatures on which the decision may depend.
func (j *Judgement) Awaited() []string {
	var domains []string
	for _, class := range j.Used() {
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
func (j *Judgement) Finish(signatures []verdict.Signature) {
	j.Message.BodyKnown, j.Message.Signatures = true, signatures
	classes := j.Used()
	j.judgePending(classes)
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
		j.judgeHeader(again, new(HeaderFindings))
	}
}

// AssumeProved takes the pending proofs about some classes for proven, for a door that sees no more
// of the message.
func (j *Judgement) AssumeProved(classes ...*Class) {
	for _, class := range classes {
		for _, f := range class.findings() {
			f.Verdict = *proved(&f.Verdict)
		}
		if class.Envelope.Verdict.ClearsMessage {
			class.Header = nil
		}
	}
}

// Refusing returns which classes refuse a message that others take; if none does, which discard it.
func (j *Judgement) Refusing() func(*Class) bool {
	is := verdict.Action.Refuses
	decides := func(class *Class) bool { return is(class.Decides().Verdict.Action) }
	if !slices.ContainsFunc(j.taken, decides) {
		is = verdict.Action.Drops
	}
	return decides
}

// Shown returns the finding that a line about an accepted message shows, what was done because
// of it, and why a listed sender passed.
func (j *Judgement) Shown() (f *verdict.Finding, action verdict.Action, exempt string) {
	classes := j.taken
	nobody := len(classes) == 0
	switch {
	case nobody && len(j.dropped) > 0: // the protocol cannot discard
		return j.dropped[0].Decides(), verdict.Tag, j.Exempt
	case nobody:
		classes = []*Class{&j.plain}
	}
	if v := &classes[0].Envelope.Verdict; len(classes) == 1 && v.Action == verdict.Accept && v.Match.IsZero() && classes[0].Header == nil {
		return &noFinding, verdict.Accept, j.Exempt // as for nearly every message
	}
	var all, pass []*verdict.Finding
	refusing := &noFinding
	for _, class := range classes {
		all = append(all, class.findings()...)
		switch finding := class.Decides(); {
		case finding.Verdict.Action < verdict.Defer:
			pass = append(pass, finding)
		case finding.Verdict.Action > refusing.Verdict.Action:
			refusing = finding
		}
	}
	strictest, passing := strictestOf(all), strictestOf(pass)
	switch {
	case nobody && strictest.Verdict.Action > verdict.Tag: // nobody was named who is not exempt
		return strictest, verdict.Accept, "no_recipient"
	case refusing.Verdict.Action > verdict.Accept: // and others are not, so that the message has a tag
		return refusing, verdict.Tag, j.Exempt
	case passing.Verdict.Action > verdict.Accept: // not what discards it for others
		return passing, passing.Verdict.Action, j.Exempt
	case strictest.Verdict.Action > verdict.Tag:
		return strictest, verdict.Accept, "recipient" // the sender is listed, but every recipient is exempt
	default:
		return strictest, verdict.Accept, j.Exempt
	}
}

// strictestOf returns the finding that decides, see [verdict.Deciding]. It must not be changed.
func strictestOf(findings []*verdict.Finding) *verdict.Finding {
	if f := verdict.Deciding(findings, false); f != nil {
		return f
	}
	return &noFinding
}
