package smtpfilter

import (
	"slices"

	"spamgate/blocklist/verdict"
)

// Conclusion is what becomes of a message, as far as its senders decide.
type Conclusion struct {
	// Finding is the one that decides. If its action is Reject or Defer, the message is
	// refused for all recipients.
	Finding verdict.Finding

	// Mixed says that the message is refused for all although some recipients would take it.
	Mixed bool

	// Tags are the contents of the fields that mark the message, each once.
	Tags []string

	// Pending says that the decision may be another one at the end of the message.
	Pending bool
}

// Refuses reports whether the message is refused for all recipients.
func (d *Conclusion) Refuses() bool { return d.Finding.Verdict.Action >= verdict.Defer }

// Decide decides about a message for the recipients of the classes, with the senders that were
// judged so far. A proof that is pending does not hold.
func (c *Classes) Decide(used []*Class) Conclusion {
	var d Conclusion
	c.conclude(&d, used)
	return d
}

// conclude sets d to what Decide returns.
func (c *Classes) conclude(d *Conclusion, used []*Class) {
	classes := unique(used)
	*d = Conclusion{}
	c.decide(d, classes, (*Class).deciding)
	if slices.ContainsFunc(classes, (*Class).pending) {
		c.decidePending(d, classes)
	}
}

// decidePending completes a decision if verdicts are pending.
func (c *Classes) decidePending(d *Conclusion, classes []*Class) {
	var best Conclusion
	c.decide(&best, classes, (*Class).decidingProved)
	if best.Refuses() && best.Finding.Verdict.Action == d.Finding.Verdict.Action {
		*d = best // it is refused in any case, and this is why
		return
	}
	d.Pending = slices.ContainsFunc(classes, func(class *Class) bool {
		return class.deciding().Verdict.Action != class.decidingProved().Verdict.Action
	})
}

// AssumeProved takes the pending proofs for proven, for a door that sees no more of the message.
func (c *Classes) AssumeProved(used []*Class) {
	for _, class := range unique(used) {
		for _, f := range class.findings() {
			f.Verdict = *proved(&f.Verdict)
		}
		if class.Envelope.Verdict.ClearsMessage {
			class.Header = nil
		}
	}
}

// decide decides by the finding that decides for each class.
func (c *Classes) decide(d *Conclusion, classes []*Class, deciding func(*Class) *verdict.Finding) {
	if len(classes) == 1 { // as for nearly every message
		if d.Finding = *deciding(classes[0]); !d.Refuses() {
			d.Tags = tagsOf(classes, nil)
		}
		return
	}
	var refusals, passes []verdict.Finding
	for _, class := range classes {
		f := deciding(class)
		if f.Verdict.Action >= verdict.Defer {
			refusals = append(refusals, *f)
		} else {
			passes = append(passes, *f)
		}
	}
	d.Finding = verdict.Strictest(passes)
	takes := func(f verdict.Finding) bool { return !f.Verdict.Action.Drops() }
	mixed := slices.ContainsFunc(passes, takes)
	if len(refusals) > 0 && (!mixed || c.policy.MixedHeaders == MixedRefuse || slices.ContainsFunc(refusals, verdict.Finding.NoAnswer)) {
		d.Finding, d.Mixed = verdict.Strictest(refusals), mixed
		return
	}
	d.Tags = tagsOf(classes, refusals)
}

// tagsOf returns the tags of a message for the recipients of the classes, some of whom refuse
// it.
func tagsOf(classes []*Class, refusals []verdict.Finding) []string {
	var tags []string
	add := func(tag string) {
		if len(tags) < maxTags && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	for _, f := range refusals {
		add(tagOf(&f.Verdict))
	}
	for _, class := range classes {
		var own []string
		for _, f := range class.findings() {
			own = addTag(own, &f.Verdict)
		}
		for _, tag := range own {
			add(tag)
		}
	}
	return tags
}

// Decides returns the finding that decides for the recipients of the class. A proof that is
// pending does not hold.
func (c *Class) Decides() verdict.Finding { return *c.deciding() }

// deciding returns the same. It must not be changed.
func (c *Class) deciding() *verdict.Finding {
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
	of := verdict.Deciding(findings, c.Exempt)
	switch {
	case of == nil:
		return &noFinding
	case mayClear && of.Identity != verdict.EnvelopeIdentity && of.Verdict.Action > verdict.Tag:
		deferred := *of
		deferred.Verdict.Action = verdict.Defer
		return &deferred
	}
	return of
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
	of := *f
	of.Verdict = *f.Verdict.Proved
	return &of
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
