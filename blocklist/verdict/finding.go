package verdict

import "errors"

// EnvelopeIdentity is the Identity of the reverse-path.
const EnvelopeIdentity = "envelope"

// Finding is the verdict on one identity of a message.
type Finding struct {
	Identity string // EnvelopeIdentity, or the header field: "From"
	Address  string // "" for the null reverse-path
	Form     string // what the field holds if servers may make Address of it: "user%domain"
	Verdict  Verdict
	Err      error // the sender was not looked up: ErrNoAnswer, or it is not an address

	// Policy is the name of the rule for the recipients, if there is one.
	Policy string
}

// NoAnswer reports whether the lists could not be asked. The verdict is Defer
// then, of no list.
func (f Finding) NoAnswer() bool { return errors.Is(f.Err, ErrNoAnswer) }

// Decide returns the finding whose action decides: the strictest, the first of those alike. If
// nothing asks for an action it is the first finding that an entry matched, else the zero Finding.
// For recipients that are all reachable by every sender (exempt) nothing stricter than Tag counts.
func Decide(findings []Finding, exempt bool) Finding {
	all := make([]*Finding, len(findings))
	for i := range findings {
		all[i] = &findings[i]
	}
	if best := Deciding(all, exempt); best != nil {
		return *best
	}
	return Finding{}
}

// Deciding is Decide without copies, since a Finding is large. It returns nil for the zero
// Finding. Of findings that defer, one that says that the lists could not be asked decides: the
// answer may be a stricter one, so that no tag may stand for it.
func Deciding(findings []*Finding, exempt bool) *Finding {
	var best *Finding
	action, matched := Accept, false // of the best
	for _, f := range findings {
		matches := f.Verdict.Match.List != ""
		switch {
		case exempt && f.Verdict.Action > Tag: // does not count
		case f.Verdict.Action > action, action == Accept && !matched && matches,
			action == Defer && f.Verdict.Action == Defer && f.NoAnswer() && !best.NoAnswer():
			best, action, matched = f, f.Verdict.Action, matches
		}
	}
	return best
}
