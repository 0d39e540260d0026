package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"spamgate/blocklist"
	"spamgate/blocklist/verdict"
	"spamgate/internal/config"
	"spamgate/internal/door"
	"spamgate/internal/policyservice"
	"spamgate/internal/rhsbl"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/smtpfilter"
)

// doorSession says what a door answers.
type doorSession struct {
	door config.Door
	*session
}

// doorSessions returns a session for each door, or for the one that the question names.
func (e *Engine) doorSessions(c *config.Config, set *blocklist.Set, q Question) (all []doorSession) {
	for _, d := range c.Doors {
		if q.Listener != "" && q.Listener != d.Name {
			continue
		}
		as := setup.Judged{Name: d.Name, Lists: d.Lists, Policy: setup.DoorPolicy(c, d), Door: &d}
		all = append(all, doorSession{d, e.newSession(c, set, as, q)})
	}
	return all
}

// doorResult is what a door answers about a sender or a message.
type doorResult struct {
	Door     string         `json:"door"`               // "policy_service", "milter" or "dns", as in the log
	Listener string         `json:"listener"`           // its name, as in the log
	Envelope string         `json:"envelope,omitempty"` // the answer about the envelope sender, to the first recipient
	Header   string         `json:"header,omitempty"`   // the answer about the header, of a milter
	Records  []rhsbl.Record `json:"records,omitempty"`  // the answers to the questions for names

	ToEach []doorAnswer `json:"to_each,omitempty"` // the answers to the recipients, if they differ
}

// doorAnswer is the answer about the envelope sender to some recipients.
type doorAnswer struct {
	Recipients []string `json:"recipients"`
	Envelope   string   `json:"envelope"`
}

// newResult returns the empty result of the door.
func (d doorSession) newResult() doorResult {
	r := doorResult{Door: d.door.Table, Listener: d.door.Name}
	if d.door.Table == config.TableDNSServer {
		r.Door = "dns"
	}
	return r
}

// doorsOn returns what each door answers about an address, and the strictest action of them.
func (k *session) doorsOn(ctx context.Context, address string) (all []doorResult, worst verdict.Action, err error) {
	for _, d := range k.doors {
		r := d.newResult()
		if d.door.Table == config.TableDNSServer {
			s := d.door
			set := d.judge.View().Set()
			settings := rhsbl.Settings{Zone: s.Zone, HashedZone: s.HashedZone, Lists: s.Lists, Contact: d.config.Policy.Contact}
			if r.Records, err = rhsbl.Lookup(set, settings, address); err != nil {
				return nil, worst, fmt.Errorf("%s: %w", address, err)
			}
			worst = max(worst, rhsbl.Strictest(r.Records))
			all = append(all, r)
			continue
		}
		groups, toAll := d.judgeForEach(ctx, address)
		first := groups[0]
		if err := d.notJudged(address, first.class.Envelope, first.header[0]); err != nil {
			return nil, worst, err
		}
		worst = max(worst, d.answerEnvelope(&r, groups))
		if d.door.Table == config.TableMilter && first.class.Envelope.Address != "" {
			r.Header = d.says(toAll.Finding, toAll.Tags)
			if toAll.Mixed {
				r.Header = d.policy.Refusal(toAll.Finding, "ID", refusing(groups)...).String()
			}
			worst = max(worst, d.does(toAll.Finding))
		}
		all = append(all, r)
	}
	return all, worst, nil
}

// refusing returns the recipients who do not want a message with the address in its header.
func refusing(groups []*group) (all []string) {
	for _, g := range groups {
		if f := verdict.Decide(g.header, g.class.Exempt); f.Verdict.Action >= verdict.Defer {
			all = append(all, g.recipients...)
		}
	}
	return all
}

// answerEnvelope sets the door's answers about the envelope sender to the recipients. It returns
// the strictest action.
func (d doorSession) answerEnvelope(r *doorResult, groups []*group) (worst verdict.Action) {
	differ := false
	for i, g := range groups {
		f := d.atRCPT(g)
		answer := d.says(f, nil)
		if i == 0 {
			r.Envelope = answer
		}
		differ = differ || answer != r.Envelope
		r.ToEach = append(r.ToEach, doorAnswer{g.recipients, answer})
		worst = max(worst, d.does(f))
	}
	if !differ {
		r.ToEach = nil
	}
	return worst
}

// atRCPT returns the finding that the door answers about the envelope sender. While a proof is
// pending it lets the message pass: a milter decides at its end, and a policy service does not
// see it.
func (d doorSession) atRCPT(g *group) *verdict.Finding {
	f := verdict.Decide([]verdict.Finding{g.class.Envelope}, g.class.Exempt)
	if f.Verdict.Proved != nil {
		f.Verdict = *f.Verdict.Proved
	}
	return &f
}

// does returns what the door does because of a finding. A policy service cannot discard a
// message, and tags it.
func (d doorSession) does(f *verdict.Finding) verdict.Action {
	if d.door.Table == config.TablePolicyService && f.Verdict.Action.Drops() {
		return verdict.Tag
	}
	return f.Verdict.Action
}

// doorsOnMessage returns what the doors that see messages answer about one, and the strictest
// action of them.
func (k *session) doorsOnMessage(ctx context.Context, in messageIn) (all []doorResult, worst verdict.Action, err error) {
	for _, d := range k.doors {
		if d.door.Table == config.TableDNSServer {
			continue
		}
		milter := d.door.Table == config.TableMilter
		m, err := d.judgeMessage(ctx, in, milter)
		if err != nil {
			return nil, worst, fmt.Errorf("%s: %w", d.door.Name, err)
		}
		r := d.newResult()
		if in.judged {
			worst = max(worst, d.answerEnvelope(&r, m.groups))
		}
		if milter && slices.ContainsFunc(m.groups, func(g *group) bool { return !g.refused }) {
			r.Header = d.says(m.end.Finding, m.end.Tags)
			does := d.does(m.end.Finding)
			if refused := m.refusalOf(m.groups...); !refused.IsZero() {
				r.Header, does = refused.String(), verdict.Reject
			} else if m.end.Mixed {
				r.Header = d.policy.Refusal(m.end.Finding, "ID", m.only()...).String()
			}
			worst = max(worst, does)
		}
		all = append(all, r)
	}
	return all, worst, nil
}

// says returns the door's answer because of a finding, and with the tags that the message has
// if it is not refused.
func (d doorSession) says(f *verdict.Finding, tags []string) string {
	a := door.NewAnswer(&d.policy, f, "ID")
	if tags != nil {
		a.Tags = tags
	}
	switch {
	case d.door.Table == config.TablePolicyService:
		return policyservice.Action(a)
	case !a.Reply.IsZero():
		return a.Reply.String()
	case a.Action.Drops():
		return a.Action.String()
	case len(a.Tags) > 0:
		return "add " + smtpfilter.TagField + ": " + strings.Join(a.Tags, ", and one: ")
	}
	return "continue"
}

// kinds are the kinds of doors for people.
var kinds = map[string]string{config.TablePolicyService: "policy service", config.TableMilter: "milter", "dns": "DNS"}

// printDoors prints the answers of doors.
func (k *session) printDoors(doors []doorResult) {
	for _, r := range doors {
		fmt.Fprintf(k.out, "  %-9s %s (%s)\n", "door", r.Listener, kinds[r.Door])
		for _, a := range r.ToEach {
			term.PrintWrapped(k.out, "            for ", strings.Join(a.Recipients, ", ")+": "+a.Envelope)
		}
		switch {
		case r.ToEach != nil && r.Header == "":
		case r.ToEach != nil:
			fmt.Fprintf(k.out, "  %-9s header: %s\n", "", r.Header)
		case r.Envelope != "" && r.Header != "" && r.Header != r.Envelope:
			fmt.Fprintf(k.out, "  %-9s envelope: %s\n  %-9s header: %s\n", "", r.Envelope, "", r.Header)
		case r.Envelope+r.Header != "":
			fmt.Fprintf(k.out, "  %-9s %s\n", "", cmp.Or(r.Envelope, r.Header))
		case len(r.Records) == 0:
			fmt.Fprintf(k.out, "  %-9s is not asked about it\n", "")
		}
		for _, record := range r.Records {
			fmt.Fprintf(k.out, "  %-9s %s: %s\n", "", record.Name, cmp.Or(record.A, "not listed"))
			if record.TXT != "" {
				fmt.Fprintf(k.out, "  %-9s %q\n", "", record.TXT)
			}
		}
	}
}
