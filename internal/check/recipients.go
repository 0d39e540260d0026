package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"spamgate/blocklist/verdict"
	"spamgate/internal/config"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/wire"
)

// group is recipients for whom the same counts.
type group struct {
	class      *smtpfilter.Class
	recipients []string
	refused    bool              // at RCPT
	header     []verdict.Finding // of all senders in the header
}

// shownGroup is a group for programs.
type shownGroup struct {
	Recipients []string       `json:"recipients"`
	Policy     string         `json:"policy,omitempty"`      // the [[recipient_policy]]
	Exempt     bool           `json:"exempt,omitempty"`      // reachable by every sender
	EntriesFor []string       `json:"entries_for,omitempty"` // the keys under which lists have entries for them
	Action     verdict.Action `json:"action"`
	Decided    *finding       `json:"decided,omitempty"` // by this one
	Reply      string         `json:"reply,omitempty"`

	Envelope *finding `json:"envelope,omitempty"` // of an address
	Header   *finding `json:"header,omitempty"`
}

// readRecipients reads files with recipients, and parses the recipients of the question.
func (k *session) readRecipients() error {
	if err := k.readFiles(); err != nil {
		return err
	}
	var all []verdict.Recipient
	for _, text := range k.asked.Recipients {
		recipient, err := k.parseRecipient(text)
		switch {
		case err == nil:
			all = append(all, recipient)
		case !k.asked.Past:
			return err
		}
	}
	k.setRecipients(all)
	return nil
}

// readFiles makes the session and the doors follow files with recipients.
func (k *session) readFiles() error {
	if k.engine.options.Recipients == nil {
		return nil
	}
	files, err := k.engine.options.Recipients()
	if err != nil {
		return err
	}
	if k.byDoors {
		setup.SetRules(&k.policy, files)
	} else {
		setup.SetRecipients(&k.policy, files)
	}
	for _, d := range k.doors {
		setup.SetRules(&d.policy, files)
	}
	return nil
}

// setRecipients sets for whom the session and the doors judge.
func (k *session) setRecipients(recipients []verdict.Recipient) {
	k.recipients = recipients
	if len(recipients) > 0 {
		k.unasked = nil
	}
	for _, d := range k.doors {
		d.recipients = recipients
	}
}

// parseRecipient parses a recipient. A listener must take it.
func (k *session) parseRecipient(arg string) (recipient verdict.Recipient, err error) {
	name := k.argument("rcpt")
	rcpt, err := wire.ParsePath(arg)
	recipient = verdict.ParseRecipient(rcpt.String())
	switch {
	case strings.HasPrefix(arg, "@") && !strings.ContainsAny(arg, ":,"):
		return recipient, fmt.Errorf("%s %q is a domain: name one recipient, such as ann%s", name, arg, arg)
	case err != nil:
		return recipient, fmt.Errorf("%s %q: %w", name, arg, err)
	case rcpt.Domain() == "" && !strings.EqualFold(rcpt.String(), "postmaster"):
		return recipient, fmt.Errorf("%s %q: no domain: write user@example.net", name, arg)
	case !k.policy.TakesRecipient(recipient):
		return recipient, fmt.Errorf("%s %q is refused whoever sends: it is not in policy.recipient_domains", name, arg)
	case !k.policy.KnowsRecipient(recipient):
		return recipient, fmt.Errorf("%s %q is refused whoever sends: it is not in policy.valid_recipients", name, arg)
	}
	return recipient, nil
}

// allExempt reports whether there are recipients and every sender may reach all of them.
func allExempt(groups []*group) bool {
	return !slices.ContainsFunc(groups, func(g *group) bool { return !g.class.Exempt || g.recipients == nil })
}

// show returns the group for programs, with the finding that decides for it.
func (k *session) show(g *group, decided *verdict.Finding) shownGroup {
	s := shownGroup{Recipients: g.recipients, Exempt: g.class.Exempt, EntriesFor: g.class.For.Keys, Action: decided.Verdict.Action}
	if g.class.Rule != nil {
		s.Policy = g.class.Rule.Name
	}
	if !decided.Verdict.Match.IsZero() {
		d := newFinding(*decided)
		s.Decided = &d
	}
	if reply := k.policy.Refusal(decided, "ID"); !reply.IsZero() {
		s.Reply = reply.String()
	}
	return s
}

// say returns what the recipients of the group have a say in, "" for nothing.
func (g *group) say() string {
	var says []string
	if r := g.class.Rule; r != nil {
		says = append(says, "policy "+r.Name+": "+describeRule(r))
	}
	if g.class.For.Keys != nil {
		says = append(says, "lists have entries for "+strings.Join(g.class.For.Keys, ", "))
	}
	if g.class.Exempt && g.class.Rule == nil {
		says = append(says, "reachable by every sender")
	}
	return strings.Join(says, "; ")
}

// describeRule returns what a rule says, in the words of the configuration.
func describeRule(r *smtpfilter.RecipientRule) string {
	var says []string
	if r.Exempt {
		says = append(says, "exempt")
	}
	if r.Lists != nil {
		says = append(says, "only lists "+strings.Join(r.Lists, ", "))
	}
	if r.MaxAction != verdict.Accept {
		says = append(says, "at most "+r.MaxAction.String())
	}
	if r.Monitor {
		says = append(says, "only logged")
	}
	return strings.Join(says, ", ")
}

// printGroup prints for whom the following is, if recipients are given.
func (k *session) printGroup(g *group, action string) {
	if g.recipients == nil {
		return
	}
	say := cmp.Or(g.say(), "no policy, and no list has an entry for mail to them")
	if len(g.recipients) == 1 {
		say = cmp.Or(g.say(), "no policy, and no list has an entry for this recipient")
	}
	term.PrintWrapped(k.out, "for ", strings.Join(g.recipients, ", ")+": "+action)
	term.PrintWrapped(k.out, "  ", say)
}

// listsByRecipient returns the names of the lists by recipient among some lists; none means all.
func listsByRecipient(c *config.Config, among []string) (names []string) {
	for _, l := range c.Lists {
		if l.PerRecipient && (len(among) == 0 || slices.Contains(among, l.Name)) {
			names = append(names, l.Name)
		}
	}
	return names
}

// printUnasked prints which lists said nothing, because no recipient is known.
func (k *session) printUnasked() {
	if len(k.unasked) > 0 {
		term.PrintWrapped(k.out, "  ", "not asked, for lack of a recipient: "+strings.Join(k.unasked, ", ")+" (name one with "+k.argument("rcpt")+")")
	}
}
