package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"spamgate/blocklist"
	"spamgate/blocklist/verdict"
	"spamgate/internal/decisions"
	"spamgate/internal/setup"
)

// effect returns what the first change does to a message of the history.
func (c *comparison) effect(ctx context.Context, d *decisions.Decision) (Effect, error) {
	if isHidden(d) {
		return Effect{Why: "the history does not show the addresses of this mail"}, nil
	}
	was, judged, err := c.compare(ctx, d)
	if err != nil {
		return Effect{}, err
	}
	k, err := c.of(d)
	switch {
	case err != nil:
		return Effect{}, err
	case k == nil:
		return Effect{Why: fmt.Sprintf("there is no listener %s any more", d.Listener)}, nil
	case was == nil:
		return Effect{Why: "no sender of this mail is judged"}, nil
	}
	change := c.changes[0]
	e := Effect{Tagged: was.worst == verdict.Tag}
	if i := setup.ListIndex(c.config, change.List); letsIn(c.config.Lists[i].Type == "allow", change) {
		e.Already = was.worst == verdict.Accept
		e.Helps, e.Why = k.helpsIn(change, was, judged)
	} else {
		e.Already = refuses(was.worst) && judged.worst <= was.worst
		e.Helps, e.Why = k.helpsOut(change, was, judged)
	}
	return e, nil
}

// letsIn reports whether a change of a list is meant to let mail in.
func letsIn(allow bool, c blocklist.Change) bool {
	lets := allow
	if !allow && c.Entry.Exception {
		lets = true
	}
	return lets != c.Remove
}

// helpsIn reports whether a change lets a message in, or takes its tag away, and says why.
func (k *compared) helpsIn(c blocklist.Change, was, judged *judgedMessage) (bool, string) {
	switch {
	case refuses(judged.worst):
		return false, k.whyStill(c, judged)
	case was.worst == verdict.Accept:
		return false, "the lists let this mail in already"
	case judged.worst == verdict.Tag && !refuses(was.worst):
		return false, "it is delivered with a tag all the same: " + standing(judged.decided.Verdict.Match)
	case judged.worst == verdict.Tag:
		return true, "it is delivered with a tag: " + standing(judged.decided.Verdict.Match)
	case !judged.headerSeen:
		return true, "the gate has not seen the header of this mail: a sender there may be listed, too"
	}
	return true, ""
}

// whyStill says why a message is refused in spite of a change.
func (k *compared) whyStill(c blocklist.Change, judged *judgedMessage) string {
	f := judged.decided
	m := f.Verdict.Match
	if why := k.whyUnasked(c, judged); why != "" {
		return why
	}
	own := matchOf(f.Verdict, c)
	switch {
	case c.Remove || c.Entry.Exception:
		return fmt.Sprintf("%s is still refused: %s", describeSender(f), standing(m))
	case own == nil && matches(judged, c):
		return fmt.Sprintf("the entry lets in another sender of this mail, but %s is still refused: %s", describeSender(f), standing(m))
	case own == nil:
		return fmt.Sprintf("the entry does not match %s, and %s", describeSender(f), standing(m))
	case own.Unproven:
		return fmt.Sprintf("the entry counts only if the sender is proven by %s, which is not known of this mail", orWords(own.ProvenBy))
	case own.Rank > m.Rank && m.Sender == own.Sender:
		return fmt.Sprintf("list %s has the more specific entry %s, which stands", m.List, m.Entry)
	}
	return fmt.Sprintf("%s is still refused: %s", describeSender(f), standing(m))
}

// whyUnasked says why a list counts for nothing in a message, or "".
func (k *compared) whyUnasked(c blocklist.Change, m *judgedMessage) string {
	list := c.List
	if names := k.lists; len(names) > 0 && !slices.Contains(names, list) {
		return fmt.Sprintf("%s does not use the list %s", k.asked.Listener, list)
	}
	if c.Entry.For != "" {
		keys := func(g *group) bool { return slices.Contains(g.class.For.Keys, c.Entry.For) }
		if !slices.ContainsFunc(m.groups, keys) && !c.Remove {
			return fmt.Sprintf("the entry is for mail to %s, and this mail was not", c.Entry.For)
		}
	}
	for _, g := range m.groups {
		if r := g.class.Rule; r != nil && r.Lists != nil && !slices.Contains(r.Lists, list) {
			return fmt.Sprintf("the recipient policy %s does not use the list %s", r.Name, list)
		}
	}
	return ""
}

// helpsOut reports whether a change stops a message, and says why.
func (k *compared) helpsOut(c blocklist.Change, was, judged *judgedMessage) (bool, string) {
	if judged.worst > was.worst {
		if !refuses(judged.worst) {
			return true, fmt.Sprintf("it is not refused, but gets the action %s", judged.worst)
		}
		return true, ""
	}
	if refuses(judged.worst) {
		return false, "the lists refuse this mail already: " + standing(was.decided.Verdict.Match)
	}
	if why := k.whyUnasked(c, judged); why != "" {
		return false, why
	}
	for _, g := range judged.groups {
		for _, f := range append([]verdict.Finding{g.class.Envelope}, g.class.Header...) {
			own := matchOf(f.Verdict, c)
			switch {
			case own == nil:
			case own.Shielded:
				return false, fmt.Sprintf("list %s lets the sender in", shieldOf(f.Verdict, *own))
			case own.Monitor || f.Verdict.Would != nil:
				return false, "the list only logs"
			case g.class.Exempt:
				return false, "the recipients are reachable by every sender"
			case g.class.Rule != nil:
				return false, fmt.Sprintf("the recipient policy %s: %s", g.class.Rule.Name, describeRule(g.class.Rule))
			}
		}
	}
	if c.Remove {
		return false, "no block list has an entry for this mail"
	}
	return false, "the entry matches no sender of this mail where the list counts"
}

// standing describes an entry that stands.
func standing(m verdict.Match) string {
	switch {
	case m.IsZero():
		return "no list refuses it, but some recipients' lists do"
	case m.For != "":
		return fmt.Sprintf("list %s has the entry %s for %s", m.List, m.Entry, m.For)
	}
	return fmt.Sprintf("list %s has the entry %s", m.List, m.Entry)
}

// describeSender returns the sender of a finding, and where it stands.
func describeSender(f *verdict.Finding) string {
	address := cmp.Or(f.Address, nullSender)
	if f.Identity != verdict.EnvelopeIdentity {
		address += " in the header"
	}
	if inner := f.Verdict.Match.Sender; inner != "" {
		address = inner + " within " + address
	}
	return address
}

// matchOf returns the match that is the entry of a change, or nil.
func matchOf(v verdict.Verdict, c blocklist.Change) *verdict.Match {
	all := v.Matches
	if v.Would != nil {
		all = v.Would.Matches
	}
	i := slices.IndexFunc(all, func(m verdict.Match) bool {
		return m.List == c.List && m.For == c.Entry.For && strings.TrimPrefix(m.Entry, "!") == c.Entry.Key
	})
	if i < 0 {
		return nil
	}
	return &all[i]
}

// matches reports whether the entry of a change is a match of any sender of a message.
func matches(m *judgedMessage, c blocklist.Change) bool {
	return slices.ContainsFunc(m.groups, func(g *group) bool {
		return slices.ContainsFunc(append([]verdict.Finding{g.class.Envelope}, g.class.Header...), func(f verdict.Finding) bool {
			return matchOf(f.Verdict, c) != nil
		})
	})
}
