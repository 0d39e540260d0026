package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"spamgate/blocklist/verdict"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/wire"
)

// group is recipients for whom the same counts.
type group struct {
	class      *smtpfilter.Class
	recipients []string
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

// readRecipients reads files with recipients, if they matter, and parses the recipients of
// --rcpt.
func (k *session) readRecipients() (err error) {
	if len(k.options.rcpts) == 0 && k.options.message == "" {
		return nil
	}
	files, err := setup.ReadRecipients(k.config)
	if err != nil {
		return err
	}
	if k.byDoors {
		setup.SetRules(&k.policy, files)
	} else {
		setup.SetRecipients(&k.policy, files)
	}
	if k.recipients, err = k.parseRecipients(); err != nil {
		return err
	}
	for _, d := range k.doors {
		setup.SetRules(&d.policy, files)
		d.recipients = k.recipients
	}
	return nil
}

// parseRecipients returns the recipients of --rcpt. A listener must take them.
func (k *session) parseRecipients() ([]verdict.Recipient, error) {
	var all []verdict.Recipient
	for _, arg := range k.options.rcpts {
		rcpt, err := wire.ParsePath(arg)
		recipient := verdict.ParseRecipient(rcpt.String())
		switch {
		case err != nil:
			return nil, fmt.Errorf("--rcpt %q: %w", arg, err)
		case rcpt.Domain() == "" && !strings.EqualFold(rcpt.String(), "postmaster"):
			return nil, fmt.Errorf("--rcpt %q: no domain: write user@example.net", arg)
		case !k.policy.TakesRecipient(recipient):
			return nil, fmt.Errorf("--rcpt %q is refused whoever sends: it is not in policy.recipient_domains", arg)
		case !k.policy.KnowsRecipient(recipient):
			return nil, fmt.Errorf("--rcpt %q is refused whoever sends: it is not in policy.valid_recipients", arg)
		}
		all = append(all, recipient)
	}
	return all, nil
}

// groupsOf returns the recipients by what counts for them; without recipients those who have no
// say.
func groupsOf(ctx context.Context, classes *smtpfilter.Classes, recipients []verdict.Recipient) []*group {
	if len(recipients) == 0 {
		return []*group{{class: classes.Plain()}}
	}
	var groups []*group
	for _, r := range recipients {
		class := classes.Of(ctx, r)
		i := slices.IndexFunc(groups, func(g *group) bool { return g.class == class })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{class: class})
		}
		groups[i].recipients = append(groups[i].recipients, r.Path)
	}
	return groups
}

// classesOf returns the classes of some groups.
func classesOf(groups []*group) (classes []*smtpfilter.Class) {
	for _, g := range groups {
		classes = append(classes, g.class)
	}
	return classes
}

// allExempt reports whether there are recipients and every sender may reach all of them.
func allExempt(groups []*group) bool {
	return !slices.ContainsFunc(groups, func(g *group) bool { return !g.class.Exempt || g.recipients == nil })
}

// show returns the group for programs, with the finding that decides for it.
func (k *session) show(g *group, decided verdict.Finding) shownGroup {
	s := shownGroup{Recipients: g.recipients, Exempt: g.class.Exempt, EntriesFor: g.class.For.Keys, Action: decided.Verdict.Action}
	if g.class.Rule != nil {
		s.Policy = g.class.Rule.Name
	}
	if !decided.Verdict.Match.IsZero() {
		d := newFinding(decided)
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

// printGroup prints for whom the following is, if that matters.
func (k *session) printGroup(g *group, of int, action string) {
	say := g.say()
	if g.recipients == nil || of == 1 && say == "" {
		return
	}
	term.PrintWrapped(k.out, "for ", strings.Join(g.recipients, ", ")+": "+action)
	if say != "" {
		term.PrintWrapped(k.out, "  ", say)
	}
}
