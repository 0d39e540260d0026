package check

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"spamgate/blocklist"
	"spamgate/blocklist/verdict"
	"spamgate/internal/config"
	"spamgate/internal/door"
	"spamgate/internal/policyservice"
	"spamgate/internal/rhsbl"
	"spamgate/internal/setup"
	"spamgate/smtpfilter"
)

// doorSession says what a door answers.
type doorSession struct {
	door config.Door
	*session
}

// doorSessions returns a session for each door, or for the one that the options name.
func doorSessions(c *config.Config, set *blocklist.Set, o checkOptions) (all []doorSession) {
	for _, d := range c.Doors() {
		if o.listener != "" && o.listener != d.Name {
			continue
		}
		as := setup.Judged{Name: d.Name, Lists: d.Lists, Policy: setup.DoorPolicy(c, d)}
		k := newSession(c, set, as)
		k.options = o
		all = append(all, doorSession{d, k})
	}
	return all
}

// doorResult is what a door answers about a sender or a message.
type doorResult struct {
	Door     string         `json:"door"`               // "policy_service", "milter" or "dns", as in the log
	Listener string         `json:"listener"`           // its name, as in the log
	Envelope string         `json:"envelope,omitempty"` // the answer about the envelope sender
	Header   string         `json:"header,omitempty"`   // the answer about the header, of a milter
	Records  []rhsbl.Record `json:"records,omitempty"`  // the answers to the questions for names
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
func (k *session) doorsOn(address string) (all []doorResult, worst verdict.Action, err error) {
	for _, d := range k.doors {
		r := d.newResult()
		if d.door.Table == config.TableDNSServer {
			s := d.config.DNSServers[d.door.Index]
			set := d.judge.View().Set()
			settings := rhsbl.Settings{Zone: s.Zone, HashedZone: s.HashedZone, Lists: s.Lists, Contact: d.config.Policy.Contact}
			if r.Records, err = rhsbl.Lookup(set, settings, address); err != nil {
				return nil, worst, fmt.Errorf("%s: %w", address, err)
			}
			for _, record := range r.Records {
				worst = max(worst, record.Action())
			}
			all = append(all, r)
			continue
		}
		envelope, header := d.judgeAddress(address)
		if err := d.notJudged(address, envelope, header); err != nil {
			return nil, worst, err
		}
		r.Envelope = d.says(envelope, nil)
		worst = max(worst, d.does(envelope))
		if d.door.Table == config.TableMilter && envelope.Address != "" {
			r.Header = d.says(header, nil)
			worst = max(worst, d.does(header))
		}
		all = append(all, r)
	}
	return all, worst, nil
}

// does returns what the door does because of a finding. A policy service cannot discard a
// message, and tags it.
func (d doorSession) does(f verdict.Finding) verdict.Action {
	if d.door.Table == config.TablePolicyService && f.Verdict.Action == verdict.Discard {
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
		_, found, err := d.judgeMessage(ctx, in)
		if err != nil {
			return nil, worst, fmt.Errorf("%s: %w", d.door.Name, err)
		}
		r, header := d.newResult(), found
		var envelope verdict.Finding
		refused := false
		if in.judged {
			header = found[1:]
			envelope = verdict.Decide(found[:1], in.exempt)
			refused = envelope.Verdict.Action >= verdict.Defer
			r.Envelope = d.says(envelope, nil)
			worst = max(worst, d.does(envelope))
		}
		if d.door.Table == config.TableMilter && !refused {
			decided := verdict.Decide(header, in.exempt)
			r.Header = d.says(decided, smtpfilter.Tags(envelope, header))
			worst = max(worst, d.does(decided))
		}
		all = append(all, r)
	}
	return all, worst, nil
}

// says returns the door's answer because of a finding, and with the tags that the message has
// if it is not refused.
func (d doorSession) says(f verdict.Finding, tags []string) string {
	if tags == nil {
		tags = smtpfilter.Tags(f, nil)
	}
	a := door.Answer{Reply: d.policy.Refusal(f, "ID"), Action: f.Verdict.Action, Tags: tags}
	if a.Action == verdict.Discard {
		a.DiscardTag = smtpfilter.TagOf(f)
	}
	switch {
	case d.door.Table == config.TablePolicyService:
		return policyservice.Action(a)
	case !a.Reply.IsZero():
		return a.Reply.String()
	case a.Action == verdict.Discard:
		return "discard"
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
		switch {
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
