package check

import (
	"cmp"
	"context"
	"slices"

	"spamgate/blocklist"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/config"
	"spamgate/internal/decisions"
)

// Remedy is a way to let a message in: changes of managed lists, all of which it needs.
type Remedy []Proposed

// Bounds of what Remedies tries.
const (
	maxRemedySenders    = 4  // senders of a message that are let in
	maxRemedyRecipients = 20 // recipients for whom entries are added
)

// Remedies returns the ways to let a message of the history in, those first that let in the
// least else. Each was tried: it does let the message in, as far as the history shows it. There is
// none if the lists let the message in already, or if no change of a managed list would.
func (e *Engine) Remedies(ctx context.Context, d decisions.Decision) ([]Remedy, error) {
	if isHidden(&d) {
		return nil, nil
	}
	c, set := e.options.Config(), e.options.Set()
	var all []Remedy
	for _, change := range waysIn(c, &d) {
		r, err := e.remedy(ctx, c, set, &d, change)
		if err != nil {
			return nil, err
		}
		if r != nil && !slices.ContainsFunc(all, func(other Remedy) bool { return slices.Equal(other, r) }) {
			all = append(all, r)
		}
	}
	return all, nil
}

// way returns the changes that are to let a sender in, who is refused because of a match.
type way func(from string, m verdict.Match) Remedy

// waysIn returns the ways in which managed lists can let a sender of a message in, those first
// that let in the least else.
func waysIn(c *config.Config, d *decisions.Decision) (ways []way) {
	lists := managedLists(c)
	where := func(want func(config.List) bool) (some []config.List) {
		for _, l := range lists {
			if want(l) {
				some = append(some, l)
			}
		}
		return some
	}
	for _, l := range where(func(l config.List) bool { return l.Type == "allow" && l.PerRecipient }) {
		if n := len(d.Recipients); n > 0 && n <= maxRemedyRecipients {
			ways = append(ways, func(from string, _ verdict.Match) (r Remedy) {
				for _, to := range d.Recipients {
					r = append(r, Proposed{List: l.Name, Entry: from, For: to})
				}
				return r
			})
		}
	}
	add := func(l config.List) way {
		return func(from string, _ verdict.Match) Remedy { return Remedy{{List: l.Name, Entry: from}} }
	}
	for _, l := range where(func(l config.List) bool { return l.Type == "allow" && !l.PerRecipient && !l.Override }) {
		ways = append(ways, add(l))
	}
	// Of a block list the sender's own entry may go, or an exception may be added.
	block := where(func(l config.List) bool { return l.Type == "block" })
	remove := func(l config.List, wanted func(from string, m verdict.Match) bool) way {
		return func(from string, m verdict.Match) Remedy {
			if m.List != l.Name || !wanted(from, m) {
				return nil
			}
			return Remedy{{List: l.Name, Entry: m.Entry, For: m.For, Remove: true}}
		}
	}
	for _, l := range block {
		ways = append(ways, remove(l, func(from string, m verdict.Match) bool { return m.Entry == from }))
		if l.PerRecipient {
			continue
		}
		ways = append(ways, func(from string, m verdict.Match) Remedy {
			if m.List != l.Name || m.Entry == from {
				return nil
			}
			return Remedy{{List: l.Name, Entry: "!" + from}}
		})
	}
	for _, l := range where(func(l config.List) bool { return l.Type == "allow" && !l.PerRecipient && l.Override }) {
		ways = append(ways, add(l))
	}
	for _, l := range block {
		ways = append(ways, remove(l, func(string, verdict.Match) bool { return true }))
	}
	return ways
}

// managedLists returns the managed lists, the default ones first.
func managedLists(c *config.Config) (all []config.List) {
	for _, first := range []bool{true, false} {
		for _, l := range c.Lists {
			if l.Managed && l.Default == first {
				all = append(all, l)
			}
		}
	}
	return all
}

// remedy goes one way until no sender of a message is refused. It returns nil if that leads
// nowhere.
func (e *Engine) remedy(ctx context.Context, c *config.Config, set *blocklist.Set, d *decisions.Decision, through way) (Remedy, error) {
	var r Remedy
	for range maxRemedySenders + 1 {
		comparison, err := e.compare(c, set, r...)
		if err != nil {
			return nil, nil // no list can have such an entry
		}
		_, judged, err := comparison.compare(ctx, d)
		switch {
		case judged == nil || err != nil:
			return nil, err
		case !refuses(judged.worst):
			return r, nil
		}
		more := through(refusedSender(judged.decided), judged.decided.Verdict.Match)
		if more == nil || slices.ContainsFunc(more, func(p Proposed) bool { return slices.Contains(r, p) }) {
			return nil, nil
		}
		r = append(r, more...)
	}
	return nil, nil
}

// refusedSender returns the sender of a finding as an entry.
func refusedSender(f *verdict.Finding) string {
	address := cmp.Or(f.Verdict.Match.Sender, f.Address, nullSender)
	if a, err := sender.Parse(address); err == nil {
		return a.String()
	}
	return address
}
