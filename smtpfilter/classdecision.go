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
	classes := unique(used)
	d := c.decide(classes, (*Class).Decides)
	if !slices.ContainsFunc(classes, (*Class).pending) {
		return d
	}
	best := c.decide(classes, (*Class).decidesProved)
	if best.Refuses() && best.Finding.Verdict.Action == d.Finding.Verdict.Action {
		return best // it is refused in any case, and this is why
	}
	d.Pending = slices.ContainsFunc(classes, func(class *Class) bool {
		return class.Decides().Verdict.Action != class.decidesProved().Verdict.Action
	})
	return d
}

// AssumeProved takes the pending proofs for proven, for a door that sees no more of the message.
func (c *Classes) AssumeProved(used []*Class) {
	for _, class := range unique(used) {
		if class.Envelope = proved(class.Envelope); class.Envelope.Verdict.ClearsMessage {
			class.Header = nil
		}
		for i := range class.Header {
			class.Header[i] = proved(class.Header[i])
		}
	}
}

// decide decides by the finding that decides for each class.
func (c *Classes) decide(classes []*Class, decides func(*Class) verdict.Finding) Conclusion {
	var d Conclusion
	if len(classes) == 1 { // as for nearly every message
		if d.Finding = decides(classes[0]); !d.Refuses() {
			d.Tags = tagsOf(classes, nil)
		}
		return d
	}
	var refusals, passes []verdict.Finding
	for _, class := range classes {
		f := decides(class)
		if f.Verdict.Action >= verdict.Defer {
			refusals = append(refusals, f)
		} else {
			passes = append(passes, f)
		}
	}
	d.Finding = verdict.Strictest(passes)
	takes := func(f verdict.Finding) bool { return f.Verdict.Action != verdict.Discard }
	mixed := slices.ContainsFunc(passes, takes)
	if len(refusals) > 0 && (!mixed || c.policy.MixedHeaders == MixedRefuse || slices.ContainsFunc(refusals, verdict.Finding.NoAnswer)) {
		d.Finding, d.Mixed = verdict.Strictest(refusals), mixed
		return d
	}
	d.Tags = tagsOf(classes, refusals)
	return d
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
		add(TagOf(f))
	}
	for _, class := range classes {
		for _, tag := range Tags(class.Envelope, class.Header) {
			add(tag)
		}
	}
	return tags
}

// Decides returns the finding that decides for the recipients of the class. A proof that is
// pending does not hold.
func (c *Class) Decides() verdict.Finding { return c.decides(c.Envelope, c.Header) }

// decidesProved returns the finding that decides if all pending proofs hold.
func (c *Class) decidesProved() verdict.Finding {
	envelope := proved(c.Envelope)
	if envelope.Verdict.ClearsMessage {
		return c.decides(envelope, nil)
	}
	findings := make([]verdict.Finding, len(c.Header))
	for i, f := range c.Header {
		findings[i] = proved(f)
	}
	return c.decides(envelope, findings)
}

func (c *Class) decides(envelope verdict.Finding, findings []verdict.Finding) verdict.Finding {
	of := verdict.Decide(append([]verdict.Finding{envelope}, findings...), c.Exempt)
	if envelope.Verdict.MayClear && of.Identity != verdict.EnvelopeIdentity && of.Verdict.Action > verdict.Tag {
		of.Verdict.Action = verdict.Defer
	}
	return of
}

// pending reports whether a verdict on a sender is pending.
func (c *Class) pending() bool {
	return c.Envelope.Verdict.Pending || slices.ContainsFunc(c.Header, func(f verdict.Finding) bool { return f.Verdict.Pending })
}

// proved returns a finding as if the pending proofs held.
func proved(f verdict.Finding) verdict.Finding {
	if f.Verdict.Proved != nil {
		f.Verdict = *f.Verdict.Proved
	}
	return f
}
