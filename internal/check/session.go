package check

import (
	"io"
	"slices"

	"spamgate/blocklist"
	"spamgate/blocklist/judge"
	"spamgate/blocklist/verdict"
	"spamgate/internal/config"
	"spamgate/internal/dnslist"
	"spamgate/internal/proof"
	"spamgate/internal/setup"
	"spamgate/smtpfilter"
)

// session answers one question, as a listener or a door would.
type session struct {
	engine  *Engine
	asked   Question
	config  *config.Config
	judge   judge.Judge
	dns     *dnslist.Client // asks lists in DNS; nil: they are not asked
	answers *answers        // about the last address or message
	alike   bool            // the lists say the same of a sender in the envelope and in the header
	lists   []string        // that count; empty: all
	policy  smtpfilter.Policy
	proofs  *proof.Proofs // proves senders; nil: all proofs are pending
	byDoors bool          // doors decide, as where there is no listener
	bytes   bytesRules    // of the listener
	doors   []doorSession
	out     io.Writer // of who prints

	recipients []verdict.Recipient
	unasked    []string // lists by recipient that nothing was asked, for lack of a recipient
}

// session returns the session that answers a question.
func (e *Engine) session(q Question) (*session, error) {
	if err := q.validate(); err != nil && !e.options.Command {
		return nil, err
	}
	q.Client = q.Client.Unmap().WithZone("")
	c, set := e.options.Config(), e.options.Set()
	judged, err := findJudged(c, q.Listener)
	if err != nil {
		return nil, err
	}
	k := e.newSession(c, set, judged, q)
	if k.byDoors || !q.Past {
		k.doors = e.doorSessions(c, set, q)
	}
	if len(q.Recipients) > 0 {
		err = k.readRecipients()
	}
	return k, err
}

// newSession returns a session that judges as a listener or door does.
func (e *Engine) newSession(c *config.Config, set *blocklist.Set, as setup.Judged, q Question) *session {
	k := &session{
		engine:  e,
		asked:   q,
		config:  c,
		judge:   judge.New(set.Only(as.Lists).Unwrapping(setup.Wrappings(c)).Uncounted()),
		alike:   stagesAlike(c, as.Lists),
		lists:   as.Lists,
		policy:  as.Policy,
		byDoors: as.Door != nil,
		unasked: listsByRecipient(c, as.Lists),
		bytes:   bytesRulesOf(c, as, q),
	}
	if !q.Offline {
		k.dns = e.options.DNS
	}
	if !q.Past {
		k.proofs = e.options.Proofs
	}
	return k
}

// findJudged returns the listener or door of a name. If name is "" it returns the first
// listener, or, if there is none, the first door with the lists of all doors.
func findJudged(c *config.Config, name string) (setup.Judged, error) {
	judged, err := setup.FindJudged(c, name)
	if err != nil || name != "" || judged.Door == nil {
		return judged, err
	}
	for _, d := range c.Doors[1:] {
		if len(judged.Lists) == 0 || len(d.Lists) == 0 {
			judged.Lists = nil // all
			break
		}
		judged.Lists = append(slices.Clip(judged.Lists), d.Lists...)
	}
	return judged, nil
}

// stagesAlike reports whether the lists that count give the same verdict on a sender in the
// envelope and in the header, so that one lookup is enough. SPF counts in the envelope alone.
func stagesAlike(c *config.Config, names []string) bool {
	return !slices.ContainsFunc(c.Lists, func(l config.List) bool {
		counts := len(names) == 0 || slices.Contains(names, l.Name)
		return counts && (len(l.ProvenBy) > 0 || len(l.Stage) < 2 || l.HeaderAction != "" && l.HeaderAction != l.Action)
	})
}

// answer returns the Answer of this output for programs. Lists and doors are what they say, and
// print prints it for people, to k.out.
func (k *session) answer(json any, lists, doors verdict.Action, print func()) *Answer {
	a := &Answer{JSON: json, Action: lists, Listed: doors != verdict.Accept}
	if k.byDoors {
		a.Action = doors
	}
	a.Listed = a.Listed || a.Action != verdict.Accept
	a.print = func(w io.Writer) {
		k.out = w
		print()
	}
	return a
}

// argument returns the name of an argument of a question: for a command its flag.
func (k *session) argument(name string) string {
	switch {
	case k.engine.options.Command:
		return "--" + name
	case name == "rcpt":
		return "recipient"
	}
	return name
}

// finding is a verdict for programs.
type finding struct {
	Identity  string          `json:"identity,omitempty"`
	Address   string          `json:"address,omitempty"`
	Form      string          `json:"form,omitempty"` // what the header has, where servers may read it as Address
	Action    verdict.Action  `json:"action"`
	Match     *verdict.Match  `json:"match,omitempty"`
	Monitored []verdict.Match `json:"monitored,omitempty"`
	Proofs    []verdict.Proof `json:"proofs,omitempty"`    // those on which the action depends
	Proved    *finding        `json:"if_proven,omitempty"` // if a proof is pending
	Error     string          `json:"error,omitempty"`
}

func newFinding(f verdict.Finding) finding {
	r := finding{Identity: f.Identity, Address: f.Address, Form: f.Form, Action: f.Verdict.Action,
		Monitored: f.Verdict.Monitored, Proofs: f.Verdict.Proofs}
	if m := f.Verdict.Match; !m.IsZero() {
		r.Match = &m
	}
	if f.Verdict.Proved != nil {
		proved := newFinding(verdict.Finding{Verdict: *f.Verdict.Proved})
		proved.Proofs = nil
		r.Proved = &proved
	}
	if f.Err != nil {
		r.Error = f.Err.Error()
	}
	return r
}

// headline returns what happens to a sender or a message in a few words: the action of the
// lists, or, if doors decide, the strictest one of the doors.
func (k *session) headline(lists string, doors verdict.Action) string {
	switch {
	case !k.byDoors:
		return lists
	case doors == verdict.Accept && lists != verdict.Accept.String():
		return "listed, and no door refuses it"
	}
	return doors.String()
}
