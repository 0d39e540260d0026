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

// Strictest returns the finding whose action decides: the strictest, the first
// of those alike. If nothing asks for an action it is the first finding that
// an entry matched, else the zero Finding.
func Strictest(findings []Finding) Finding {
	var best Finding
	for _, f := range findings {
		switch {
		case f.Verdict.Action > best.Verdict.Action:
			best = f
		case best.Verdict.Action == Accept && best.Verdict.Match.IsZero() && !f.Verdict.Match.IsZero():
			best = f
		}
	}
	return best
}

// Decide returns the finding that decides for recipients that are all reachable by every
// sender (exempt) or not. For exempt recipients nothing stricter than Tag counts.
func Decide(findings []Finding, exempt bool) Finding {
	best := Strictest(findings)
	if !exempt || best.Verdict.Action <= Tag {
		return best
	}
	var mild []Finding
	for _, f := range findings {
		if f.Verdict.Action <= Tag {
			mild = append(mild, f)
		}
	}
	return Strictest(mild)
}
