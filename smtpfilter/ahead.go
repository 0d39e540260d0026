package smtpfilter

import (
	"slices"
	"strings"

	"spamgate/blocklist/verdict"
)

// A next hop has the tag fields of a message before the gate knows whether its signatures are
// valid. So the fields are written for what a proof may still leave standing.

// TagsAhead returns the tags for a message whose decision is pending: those that it has if no
// proof holds, if all do, or some. A recipient for whom the message is refused only if a proof
// does not hold has none.
func (c *Classes) TagsAhead(used []*Class) []string {
	var tags []string
	for _, class := range unique(used) {
		if f := class.decidingProved(); f.Verdict.Action >= verdict.Defer {
			v := f.Verdict
			v.Action = verdict.Tag
			tags = addTag(tags, &v)
		}
		for _, f := range class.findings() {
			tags = addTag(tags, &f.Verdict)
			if !f.Verdict.Pending {
				continue
			}
			tags = addTag(tags, proved(&f.Verdict))
			for _, m := range f.Verdict.Matches {
				if m.Action == verdict.Tag && !m.Shielded && !m.Monitor {
					tags = addTag(tags, &verdict.Verdict{Action: verdict.Tag, Match: m, Pending: true})
				}
			}
		}
	}
	return slices.DeleteFunc(tags, func(tag string) bool {
		plain, pending := strings.CutSuffix(tag, proofPending)
		return pending && slices.Contains(tags, plain)
	})
}

// DecideWhole decides about a message that the next hop has with these tags, but for its end.
// Used are the classes of the recipients it has the message for: it cannot forget some of them
// alone, nor can the message be tagged any more.
func (c *Classes) DecideWhole(used []*Class, tags []string) (d Conclusion) {
	classes := unique(used)
	var against []*verdict.Finding
	for _, class := range classes {
		if f := class.deciding(); f.Verdict.Action > verdict.Tag && !marks(tags, f) {
			against = append(against, f)
		}
	}
	if against == nil {
		c.conclude(&d, classes)
		d.Tags = tags
		return d
	}
	d.Finding, d.Mixed, d.Tags = *verdict.Deciding(against, false), len(against) < len(classes), tags
	if d.Mixed && d.Finding.Verdict.Action.Drops() {
		d.Finding.Verdict.Action = verdict.Reject
	}
	return d
}

// marks reports whether there is the tag of a finding that would refuse the message.
func marks(tags []string, f *verdict.Finding) bool {
	tag := tagValue(&f.Verdict.Match)
	return !f.Verdict.Action.Drops() && (slices.Contains(tags, tag) || slices.Contains(tags, tag+proofPending))
}

// Dropped reports whether the message is discarded for the recipients of the class, whatever is
// proven.
func (c *Class) Dropped() bool {
	return c.deciding().Verdict.Action.Drops() && c.decidingProved().Verdict.Action.Drops()
}
