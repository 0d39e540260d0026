package main

import (
	"fmt"
	"log/slog"

	"spamgate/blocklist"
	"spamgate/blocklist/sender"
	"spamgate/internal/config"
	"spamgate/smtpfilter"
)

// This file is where the packages meet: the configuration becomes what each of
// them is made of, and a blocklist.Decision a smtpfilter.Verdict.

// blocklistConfig is the lists' part of the configuration.
func blocklistConfig(c *config.Config, log *slog.Logger) (blocklist.Config, error) {
	b := blocklist.Config{
		Filter: blocklist.Filter{
			Kind:        blocklist.Kind(c.Filter.Kind),
			Family:      c.Filter.Family,
			FPR:         c.Filter.FPR,
			Entries:     uint64(c.Filter.Entries),
			CounterBits: int(c.Filter.CounterBits),
		},
		Confirm:      c.Filter.Confirm,
		Monitor:      c.Policy.Mode == "monitor",
		PollInterval: c.Watch.PollInterval,
		Logger:       log,
	}
	for _, l := range c.Lists {
		list, err := blocklistList(l)
		if err != nil {
			return b, fmt.Errorf("list %q: %w", l.Name, err)
		}
		b.Lists = append(b.Lists, list)
	}
	return b, nil
}

func blocklistList(l config.List) (blocklist.List, error) {
	list := blocklist.List{
		Name:              l.Name,
		Paths:             []string{l.Path},
		Exact:             l.Match == "exact",
		Override:          l.Override,
		Optional:          l.Optional,
		AllowPublicSuffix: l.AllowPublicSuffix,
		PublicReason:      l.PublicReason,
	}
	if err := list.Type.UnmarshalText([]byte(l.Type)); err != nil {
		return list, err
	}
	for _, a := range []struct {
		text   string
		action *blocklist.Action
	}{{l.Action, &list.Action}, {l.HeaderAction, &list.HeaderAction}} {
		if a.text == "" {
			continue
		}
		if err := a.action.UnmarshalText([]byte(a.text)); err != nil {
			return list, err
		}
	}
	for _, name := range l.Stage {
		var stage blocklist.Stage
		if err := stage.UnmarshalText([]byte(name)); err != nil {
			return list, err
		}
		list.Stages |= stage
	}
	return list, nil
}

// judge asks one Set, or some lists of it.
type judge struct{ lists *blocklist.View }

func (j judge) Generation() uint64 { return j.lists.Set().Generation() }

func (j judge) Judge(stage smtpfilter.Stage, address string) (smtpfilter.Verdict, error) {
	a, err := sender.Parse(address)
	if err != nil {
		return smtpfilter.Verdict{}, err
	}
	if stage == smtpfilter.Header {
		return verdict(j.lists.Lookup(blocklist.Header, a)), nil
	}
	return verdict(j.lists.Lookup(blocklist.Envelope, a)), nil
}

// verdict puts a decision into the words of the SMTP side.
func verdict(d blocklist.Decision) smtpfilter.Verdict {
	v := smtpfilter.Verdict{
		Action:        action(d.Action),
		Match:         match(d.Match),
		ClearsMessage: d.ClearsMessage,
	}
	for _, m := range d.Monitored {
		if !m.Shielded {
			v.Monitored = append(v.Monitored, match(m))
		}
	}
	return v
}

func match(m blocklist.Match) smtpfilter.Match {
	return smtpfilter.Match{
		List:         m.List,
		Entry:        m.Entry,
		File:         m.File,
		Line:         m.Line,
		Reason:       m.Reason,
		Note:         m.Note,
		Unconfirmed:  m.File == "",
		PublicReason: m.PublicReason,
		Action:       action(m.Action),
	}
}

// action maps the actions of a decision. What only observes is Accept.
func action(a blocklist.Action) smtpfilter.Action {
	switch a {
	case blocklist.Tag:
		return smtpfilter.Tag
	case blocklist.Discard:
		return smtpfilter.Discard
	case blocklist.Defer:
		return smtpfilter.Defer
	case blocklist.Reject:
		return smtpfilter.Reject
	default:
		return smtpfilter.Accept
	}
}
