package smtpfilter

import (
	"slices"
	"strings"

	"spamgate/blocklist/verdict"
)

// Conclusion is what becomes of a message, as far as its senders decide.
type Conclusion struct {
	// Finding is the one that decides. If its action is Reject or Defer, the message is
	// refused for all recipients. It must not be changed.
	Finding *verdict.Finding

	// Mixed says that the message is refused for all although some recipients would take it.
	Mixed bool

	// Tags are the contents of the fields that mark the message, each once.
	Tags []string

	// Pending says that the decision may be another one at the end of the message.
	Pending bool
}

// Refuses reports whether the message is refused for all recipients.
func (d *Conclusion) Refuses() bool { return d.Finding.Verdict.Action >= verdict.Defer }

// Decide decides about the message for all recipients, with the senders that were judged so far. A
// proof that is pending does not hold. The message is dropped for the recipients whose lists discard
// it, whatever is proven, unless it is refused. The Conclusion is valid until the next one.
func (j *Judgement) Decide() *Conclusion {
	d, tags := &j.decided, j.decided.Tags
	j.conclude(d, j.Used())
	switch {
	case !j.ahead && (!d.Refuses() || d.Pending):
		if j.drop() {
			j.conclude(d, j.Used())
		}
	case j.ahead && !d.Refuses() && len(j.taken) > 0:
		pending := d.Pending
		j.decideWhole(d, tags)
		if d.Pending = pending; d.Finding.Verdict.Action.Drops() {
			j.drop()
		}
	}
	return d
}

// drop drops the message for the recipients whose lists discard it, whatever is proven. It reports
// whether there are any to whom it would have gone.
func (j *Judgement) drop() bool {
	had := len(j.taken)
	j.taken = slices.DeleteFunc(j.taken, func(class *Class) bool {
		if class.Dropped = class.drops(); class.Dropped {
			j.dropped = append(j.dropped, class)
		}
		return class.Dropped
	})
	return len(j.taken) < had
}

// For decides about a message for the recipients of these classes alone.
func (j *Judgement) For(classes ...*Class) *Conclusion {
	d := new(Conclusion)
	j.conclude(d, classes)
	return d
}

// conclude decides about a message for the recipients of some classes.
func (j *Judgement) conclude(d *Conclusion, classes []*Class) {
	*d = Conclusion{}
	j.decide(d, classes, (*Class).Decides)
	if slices.ContainsFunc(classes, (*Class).pending) {
		j.decidePending(d, classes)
	}
}

// decidePending completes a decision if verdicts are pending.
func (j *Judgement) decidePending(d *Conclusion, classes []*Class) {
	var best Conclusion
	j.decide(&best, classes, (*Class).decidingProved)
	if best.Refuses() && best.Finding.Verdict.Action == d.Finding.Verdict.Action {
		*d = best // it is refused in any case, and this is why
		return
	}
	d.Pending = slices.ContainsFunc(classes, func(class *Class) bool {
		return class.Decides().Verdict.Action != class.decidingProved().Verdict.Action
	})
}

// decide decides by the finding that decides for each class.
func (j *Judgement) decide(d *Conclusion, classes []*Class, deciding func(*Class) *verdict.Finding) {
	if len(classes) == 1 { // as for nearly every message
		if d.Finding = deciding(classes[0]); !d.Refuses() {
			d.Tags = tagsOf(classes, nil)
		}
		return
	}
	var refusals, passes []*verdict.Finding
	for _, class := range classes {
		f := deciding(class)
		if f.Verdict.Action >= verdict.Defer {
			refusals = append(refusals, f)
		} else {
			passes = append(passes, f)
		}
	}
	d.Finding = strictestOf(passes)
	takes := func(f *verdict.Finding) bool { return !f.Verdict.Action.Drops() }
	mixed := slices.ContainsFunc(passes, takes)
	if len(refusals) > 0 && (!mixed || j.Policy.MixedHeaders == MixedRefuse || slices.ContainsFunc(refusals, noAnswer)) {
		d.Finding, d.Mixed = strictestOf(refusals), mixed
		return
	}
	d.Tags = tagsOf(classes, refusals)
}

// tagsOf returns the tags of a message for the recipients of the classes, some of whom refuse
// it.
func tagsOf(classes []*Class, refusals []*verdict.Finding) []string {
	var tags []string
	for _, f := range refusals {
		tags = putTag(tags, &f.Verdict)
	}
	for _, class := range classes {
		for _, f := range class.findings() {
			tags = addTag(tags, &f.Verdict)
		}
	}
	return tags
}

// Decides returns the finding that decides for the recipients of the class. A proof that is
// pending does not hold. It must not be changed.
func (c *Class) Decides() *verdict.Finding {
	return c.decide(c.findings(), c.Envelope.Verdict.MayClear)
}

// decidingProved returns the finding that decides if all pending proofs hold.
func (c *Class) decidingProved() *verdict.Finding {
	return c.decide(c.findingsProved(), proved(&c.Envelope.Verdict).MayClear)
}

// noFinding is the finding about no sender. It must not be changed.
var noFinding verdict.Finding

// decide returns the one of the findings that decides. MayClear is that of the reverse-path.
func (c *Class) decide(findings []*verdict.Finding, mayClear bool) *verdict.Finding {
	finding := verdict.Deciding(findings, c.Exempt)
	switch {
	case finding == nil:
		return &noFinding
	case mayClear && finding.Identity != verdict.EnvelopeIdentity && finding.Verdict.Action > verdict.Tag:
		deferred := *finding
		deferred.Verdict.Action = verdict.Defer
		return &deferred
	}
	return finding
}

// findings returns the findings that count, that about the reverse-path first.
func (c *Class) findings() []*verdict.Finding {
	findings := make([]*verdict.Finding, 0, 1+len(c.Header))
	findings = append(findings, &c.Envelope)
	for i := range c.Header {
		findings = append(findings, &c.Header[i])
	}
	return findings
}

// findingsProved returns the findings that count if all pending proofs hold. They must not be
// changed.
func (c *Class) findingsProved() []*verdict.Finding {
	findings := c.findings()
	for i, f := range findings {
		findings[i] = ifProved(f)
	}
	if findings[0].Verdict.ClearsMessage {
		return findings[:1]
	}
	return findings
}

// ifProved returns a finding as if the pending proofs held.
func ifProved(f *verdict.Finding) *verdict.Finding {
	if f.Verdict.Proved == nil {
		return f
	}
	finding := *f
	finding.Verdict = *f.Verdict.Proved
	return &finding
}

// pending reports whether a verdict on a sender is pending.
func (c *Class) pending() bool {
	return c.Envelope.Verdict.Pending || anyPending(c.Header)
}

// anyPending reports whether a verdict is pending.
func anyPending(findings []verdict.Finding) bool {
	for i := range findings {
		if findings[i].Verdict.Pending {
			return true
		}
	}
	return false
}

// proved returns a verdict as if the pending proofs held.
func proved(v *verdict.Verdict) *verdict.Verdict {
	if v.Proved != nil {
		return v.Proved
	}
	return v
}

// A next hop has the tag fields of a message before the gate knows whether its signatures are
// valid. So the fields are written for what a proof may still leave standing.

// Ahead returns the tags of a message that goes on now, to a next hop that has all of it but the end
// before its signatures are known.
func (j *Judgement) Ahead() []string {
	if j.decided.Pending {
		j.ahead, j.decided.Tags = true, tagsAhead(j.taken)
	}
	return j.decided.Tags
}

// tagsAhead returns the tags for a message whose decision is pending: those that it has if no
// proof holds, if all do, or some. A recipient for whom the message is refused only if a proof
// does not hold has none.
func tagsAhead(classes []*Class) []string {
	var tags []string
	for _, class := range classes {
		if f := class.decidingProved(); f.Verdict.Action >= verdict.Defer {
			tags = putTag(tags, &f.Verdict)
		}
		for _, f := range class.findings() {
			tags = addTag(tags, &f.Verdict)
			if !f.Verdict.Pending {
				continue
			}
			tags = addTag(tags, proved(&f.Verdict))
			for _, m := range f.Verdict.Matches {
				if m.Action == verdict.Tag && !m.Shielded && !m.Monitor {
					tags = putTag(tags, &verdict.Verdict{Match: m, Pending: true})
				}
			}
		}
	}
	return slices.DeleteFunc(tags, func(tag string) bool {
		plain, pending := strings.CutSuffix(tag, proofPending)
		return pending && slices.Contains(tags, plain)
	})
}

// decideWhole decides about a message that the next hop has with these tags, but for its end. It
// cannot forget some of the recipients alone, nor can the message be tagged any more.
func (j *Judgement) decideWhole(d *Conclusion, tags []string) {
	var against []*verdict.Finding
	for _, class := range j.taken {
		if f := class.Decides(); f.Verdict.Action > verdict.Tag && !marks(tags, f) {
			against = append(against, f)
		}
	}
	if against == nil {
		j.conclude(d, j.taken)
		d.Tags = tags
		return
	}
	*d = Conclusion{Finding: strictestOf(against), Mixed: len(against) < len(j.taken), Tags: tags}
	if d.Mixed && d.Finding.Verdict.Action.Drops() {
		refused := *d.Finding
		refused.Verdict.Action = verdict.Reject
		d.Finding = &refused
	}
}

// marks reports whether there is the tag of a finding that would refuse the message.
func marks(tags []string, f *verdict.Finding) bool {
	tag := tagValue(&f.Verdict.Match)
	return !f.Verdict.Action.Drops() && (slices.Contains(tags, tag) || slices.Contains(tags, tag+proofPending))
}

// drops reports whether the message is discarded for the recipients of the class, whatever is
// proven.
func (c *Class) drops() bool {
	return c.Decides().Verdict.Action.Drops() && c.decidingProved().Verdict.Action.Drops()
}
