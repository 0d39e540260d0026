package blocklist

import (
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// Asked describes a list without entries here: another server answers whether it holds a
// domain. Only a block list can be asked, since an answer may be forged.
type Asked struct {
	// Exact says that only the domain itself is asked for, not its parents.
	Exact bool

	// Source takes the place of the file in matches: "dns:dbl.example.org".
	Source string

	// Omits, if not nil, reports whether a domain in normal form does not count. It does
	// so for all parents of such a domain. Many goroutines call it at once.
	Omits func(domain string) bool
}

// Question asks one list about the domain of a sender. Who answers it sets the Answer.
type Question struct {
	List   string `json:"list"`
	Source string `json:"source"` // see [Asked]
	Domain string `json:"domain"` // in normal form
	Answer

	list int // index in the Set
}

// Answer is what a list says of a domain. The zero Answer says that it is not listed.
type Answer struct {
	// Name is what the list holds: the domain, or the most specific of its parents that
	// is listed. It is empty if none is.
	Name string `json:"listed,omitempty"`

	Reason string `json:"reason,omitempty"` // see [verdict.Match]
	Note   string `json:"note,omitempty"`   // likewise

	// Unknown says why there is no answer; empty if there is one. Defer says that mail
	// has to wait for it. A list that does not refuse mail never defers it.
	Unknown string `json:"unknown,omitempty"`
	Defer   bool   `json:"defer,omitempty"`
}

// Asks reports whether lists of the View are asked at a stage.
func (v *View) Asks(stage verdict.Stage) bool {
	return stage <= verdict.AllStages && len(v.asked[stage]) > 0
}

// Asked returns the names of the lists of the View that are asked at a stage.
func (v *View) Asked(stage verdict.Stage) []string {
	var names []string
	if v.Asks(stage) {
		for _, i := range v.asked[stage] {
			names = append(names, v.set.lists[i].Name)
		}
	}
	return names
}

// Questions returns the questions with which [View.Find] would call answer. It is not
// counted as a lookup.
func (v *View) Questions(stage verdict.Stage, a sender.Address) ([]Question, error) {
	f := lookupState{uncounted: true}
	if err := v.search(stage, a, sender.AllKinds, &f); err != nil {
		return nil, err
	}
	return v.questions(&f, stage, a), nil
}

// questions returns what to ask about a sender. What the lists hold here spares questions: all
// if they reject the sender or an overriding allow list matches, those of a list whose action
// is not stricter than theirs, and those of a list if an allow list shields from each match
// that it could give.
func (v *View) questions(f *lookupState, stage verdict.Stage, a sender.Address) []Question {
	if !v.Asks(stage) || a.IsNull() {
		return nil
	}
	domain := a.Domain()
	here := v.set.found(stage, f)
	for i := range here.matches {
		here.matches[i].Unproven = here.matches[i].ProvenBy != 0
	}
	var decided verdict.Verdict
	weigh(&decided, here.matches, here.overrides)
	if decided.ClearsMessage || decided.Action == verdict.Reject || a.IsLiteral() {
		return nil
	}
	var questions []Question
	for _, i := range v.asked[stage] {
		l := &v.set.lists[i]
		action := l.action(stage)
		switch {
		case action != verdict.Monitor && action <= decided.Action:
		case shielded(here.matches, l.Asked.rank(a, domain)):
		case l.Asked.omits(domain):
		default:
			questions = append(questions, Question{List: l.Name, Source: l.Asked.Source, Domain: domain, list: i})
		}
	}
	return questions
}

// shielded reports whether an allow list shields from a block match of a rank.
func shielded(matches []verdict.Match, rank int32) bool {
	for i := range matches {
		if m := &matches[i]; m.Allow && !m.Unproven && m.Rank <= rank {
			return true
		}
	}
	return false
}

// omits reports whether a domain does not count.
func (q *Asked) omits(domain string) bool { return q.Omits != nil && q.Omits(domain) }

// rank returns the rank of the sender's key that stands for its domain or for a parent of it,
// and -1 for other names.
func (q *Asked) rank(a sender.Address, name string) int32 {
	walk := a.Walk(nil)
	kind, before := sender.KindDomain, 0
	if q.Exact {
		kind, before = sender.KindAtDomain, len("@")
	}
	walk.Only(sender.KindSet(0).With(kind))
	for key, ok := walk.Next(); ok; key, ok = walk.Next() {
		if string(key.Text[before:]) == name {
			return key.Rank
		}
	}
	return -1
}

// settleAnswers notes the matches that follow from the answers.
func (v *View) settleAnswers(f *lookupState, stage verdict.Stage, a sender.Address, questions []Question) {
	for i := range questions {
		q := &questions[i]
		l := &v.set.lists[q.list]
		m := l.newMatch(stage, q.Name, l.Asked.rank(a, q.Name))
		m.File, m.Reason, m.Note = l.Asked.Source, q.Reason, q.Note
		switch {
		case q.Unknown == "":
			if m.Rank < 0 || l.Asked.omits(q.Name) {
				continue
			}
		case !q.Defer || m.Action < verdict.Defer:
			continue
		default:
			m.Entry, m.Rank = q.Domain, l.Asked.rank(a, q.Domain)
			m.Action, m.PublicReason = verdict.Defer, true
			m.Reason, m.Note = "the list does not answer now, try again later", q.Unknown
		}
		f.settle(v, stage, q.list, listMatch{match: m})
	}
}
