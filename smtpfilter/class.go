package smtpfilter

import (
	"strings"

	"spamgate/blocklist/verdict"
)

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

	taken bool // some recipients at least

	// Dropped says that the message is dropped for the recipients, unless it is refused for all.
	Dropped bool
}

// say is what counts for recipients: their class before it is judged.
type say struct {
	rule   *RecipientRule
	exempt bool
	to     verdict.For
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

// AtRCPT returns the finding about the reverse-path that decides about RCPT. While a proof is
// pending the message goes on, and nothing counts to recipients whom every sender reaches.
func (c *Class) AtRCPT() *verdict.Finding {
	if v := &c.Envelope.Verdict; v.Pending || c.Exempt && v.Action > verdict.Tag {
		return &noFinding
	}
	return &c.Envelope
}

// Apply makes of a finding what counts for the class.
func (c *Class) Apply(f *verdict.Finding) {
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

// judgeHeader judges the senders in the header. If that becomes too costly, the classes that
// were not judged to the end keep the findings that they had.
func (j *Judgement) judgeHeader(classes []*Class, all *HeaderFindings) {
	if len(classes) == 1 { // as for nearly every message
		class := classes[0]
		if j.JudgesHeader(class) {
			j.senders.begin(0)
			for f := range j.Policy.JudgeHeader(j.ctx, j.Judge, &j.Message, j.senders, &class.For) {
				class.Apply(f)
				all.add(f)
			}
			if !j.senders.TooMany() {
				class.Header = all.Deciding
			}
		}
		return
	}
	for i, alike := range j.groups(classes) {
		j.senders.begin(i)
		j.judgeAlike(alike, all, i == 0)
		if j.senders.TooMany() {
			return
		}
	}
}

// judgeAlike judges the senders in a header for classes for which the Judge says the same. All
// gets the findings of the first class of the first ones, and what monitors for the others.
func (j *Judgement) judgeAlike(alike []*Class, all *HeaderFindings, first bool) {
	summaries := make([]HeaderFindings, len(alike))
	for f := range j.Policy.JudgeHeader(j.ctx, j.Judge, &j.Message, j.senders, &alike[0].For) {
		for k, class := range alike {
			finding := *f
			class.Apply(&finding)
			summaries[k].add(&finding)
			if first && k == 0 {
				all.add(&finding)
			} else {
				all.monitor(&finding)
			}
		}
	}
	if j.senders.TooMany() {
		return
	}
	for k, class := range alike {
		class.Header = summaries[k].Deciding
	}
}

// groups returns the classes whose header is judged, those together for which the Judge says
// the same.
func (j *Judgement) groups(classes []*Class) [][]*Class {
	var groups [][]*Class
	index := map[string]int{}
	for _, class := range classes {
		if !j.JudgesHeader(class) {
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
