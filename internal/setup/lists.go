// Package setup turns the configuration into what the libraries are made of, and finds
// what is wrong with it on this machine.
package setup

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/internal/config"
	"spamgate/internal/providers"
	"spamgate/smtpfilter"
)

// This file is where the packages meet: the configuration becomes what each of
// them is made of, and a blocklist.Decision a smtpfilter.Verdict.

// BlocklistConfig is the lists' part of the configuration.
func BlocklistConfig(c *config.Config, log *slog.Logger) (blocklist.Config, error) {
	if _, err := CheckState(c, false); err != nil { // what is stored there is as good as the lists
		return blocklist.Config{}, err
	}
	b := blocklist.Config{
		Filter: blocklist.Filter{
			Kind:        blocklist.Kind(c.Filter.Kind),
			Family:      c.Filter.Family,
			FPR:         c.Filter.FPR,
			Entries:     uint64(c.Filter.Entries),
			CounterBits: int(c.Filter.CounterBits),
		},
		FilterOnly:   !c.Filter.Confirm,
		StateDir:     c.State.Dir,
		History:      int(c.State.History),
		Protect:      Protected(c.Guard),
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

// Protected are the names that no block list is to cover whole.
func Protected(g config.Guard) []string {
	names := slices.Clone(g.Protect)
	if g.ProtectProviders {
		names = append(names, providers.Domains()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// maxFetched is the largest list that is fetched, where nothing is configured.
const maxFetched = 256 << 20

func blocklistList(l config.List) (blocklist.List, error) {
	list := blocklist.List{
		Name:              l.Name,
		Paths:             []string{l.Files()},
		URL:               FetchSource(l).ShownURL(),
		Format:            listfile.Format(l.Format),
		Column:            l.Column,
		MaxBytes:          l.MaxBytes,
		MinEntries:        int(l.MinEntries),
		MaxShrink:         float64(l.MaxShrink) / 100,
		MaxGrowth:         float64(l.MaxGrowth),
		OnProtected:       blocklist.OnProtected(l.OnProtected),
		Exact:             l.Match == "exact",
		Override:          l.Override,
		Optional:          l.Optional,
		AllowPublicSuffix: l.AllowPublicSuffix,
		PublicReason:      l.PublicReason,
	}
	if list.MaxBytes == 0 && l.URL != "" {
		list.MaxBytes = maxFetched
	}
	if list.MaxGrowth == 0 {
		list.MaxGrowth = -1 // any
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

// ListJudge asks one Set, or some lists of it.
type ListJudge struct{ Lists *blocklist.View }

func (j ListJudge) Generation() uint64 { return j.Lists.Set().Generation() }

func (j ListJudge) Judge(stage smtpfilter.Stage, address string) (smtpfilter.Verdict, error) {
	if stage == smtpfilter.HeaderForm || stage == smtpfilter.HeaderWord || stage == smtpfilter.HeaderName {
		return j.judgeForm(stage, address)
	}
	a, err := sender.Parse(address)
	if err != nil {
		return smtpfilter.Verdict{}, err
	}
	d, err := j.Lists.Lookup(blocklistStage(stage), a)
	return answered(d, err)
}

// judgeForm looks up what servers may make of a header's form: block entries
// alone count.
func (j ListJudge) judgeForm(stage smtpfilter.Stage, address string) (smtpfilter.Verdict, error) {
	kinds := sender.AllKinds
	switch stage {
	case smtpfilter.HeaderWord:
		kinds = sender.KindSet(0).With(sender.KindAddress).With(sender.KindLocal)
	case smtpfilter.HeaderName:
		kinds = sender.KindSet(0).With(sender.KindAddress)
	}
	if strings.HasSuffix(address, "@") {
		if stage == smtpfilter.HeaderName {
			return smtpfilter.Verdict{}, nil
		}
		address += "invalid" // a domain that nobody has, and that is not asked about
		kinds = sender.KindSet(0).With(sender.KindLocal)
	}
	a, err := sender.Parse(address)
	if err != nil {
		return smtpfilter.Verdict{}, err
	}
	d, err := j.Lists.LookupBlocks(blocklistStage(stage), a, kinds)
	return answered(d, err)
}

// answered is what a lookup has found, or that it was not possible.
func answered(d blocklist.Decision, err error) (smtpfilter.Verdict, error) {
	if err != nil {
		return smtpfilter.Verdict{}, fmt.Errorf("%w: %w", smtpfilter.ErrNoAnswer, err)
	}
	return verdict(d), nil
}

func blocklistStage(s smtpfilter.Stage) blocklist.Stage {
	if s == smtpfilter.Envelope {
		return blocklist.Envelope
	}
	return blocklist.Header
}

// verdict puts a decision into the words of the SMTP side.
func verdict(d blocklist.Decision) smtpfilter.Verdict {
	v := smtpfilter.Verdict{
		Action:        Action(d.Action),
		Match:         Match(d.Match),
		ClearsMessage: d.ClearsMessage,
	}
	for _, m := range d.Monitored {
		if !m.Shielded {
			v.Monitored = append(v.Monitored, Match(m))
		}
	}
	return v
}

func Match(m blocklist.Match) smtpfilter.Match {
	return smtpfilter.Match{
		List:         m.List,
		Entry:        m.Entry,
		File:         m.File,
		Line:         m.Line,
		Reason:       m.Reason,
		Note:         m.Note,
		Unconfirmed:  m.File == "",
		PublicReason: m.PublicReason,
		Action:       Action(m.Action),
	}
}

// Action maps the actions of a decision. What only observes is Accept.
func Action(a blocklist.Action) smtpfilter.Action {
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
