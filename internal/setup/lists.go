// Package setup turns the configuration into the settings of the libraries, and finds what is
// wrong with it on this machine.
package setup

import (
	"fmt"
	"log/slog"
	"slices"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/internal/config"
	"spamgate/internal/providers"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// BlocklistConfig returns the configuration of the lists and the filter.
func BlocklistConfig(c *config.Config, log *slog.Logger) (store.Config, error) {
	if _, err := CheckState(c, false); err != nil { // its contents are trusted like the lists
		return store.Config{}, err
	}
	b := store.Config{
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
		Advise:       advise,
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

// ListOptions returns how the entries of a list are read.
func ListOptions(l config.List) listfile.Options {
	return listfile.Options{
		Allow:             l.Type == "allow",
		Exact:             l.Match == "exact",
		AllowPublicSuffix: l.AllowPublicSuffix,
		PerRecipient:      l.PerRecipient,
		Format:            l.Format,
		Column:            l.Column,
		Discard:           verdict.ActionOf(l.Action).Drops(),
		MaxBytes:          l.MaxBytes,
		Now:               1, // entries whose time is over are lines, too
	}
}

// advise returns the command by which a list that fails is helped.
func advise(list string, r store.Remedy) string {
	list = term.ShellWord(list)
	switch r {
	case store.AcceptHeld:
		return "if that is right, spamgate lists accept " + list + " takes it"
	case store.RetryKilled:
		return "after adding memory, run spamgate lists accept " + list + " to try again; a changed file is read without it"
	case store.UnpinFirst:
		return "spamgate lists unpin " + list + " takes what the files have"
	case store.FetchFirst:
		return "spamgate lists fetch " + list
	case store.FetchAgain:
		return "spamgate lists fetch " + list + " fetches it again"
	default:
		return "versions are kept: spamgate lists rollback " + list + " puts the last one back"
	}
}

// Protected returns the domains that no block entry may cover. "@example.com" among the
// configured ones narrows the protection of a provider to that domain alone.
func Protected(g config.Guard) []string {
	names := slices.Clone(g.Protect)
	if g.ProtectProviders {
		for _, name := range providers.Domains() {
			if !slices.Contains(g.Protect, "@"+name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// maxFetched is the default limit on the size of a fetched list, in bytes.
const maxFetched = 256 << 20

func blocklistList(l config.List) (store.List, error) {
	list := store.List{
		Name:              l.Name,
		Rules:             l.Rules,
		Zone:              text.ShownZone(l.DNSZone),
		URL:               FetchSource(l).ShownURL(),
		Format:            l.Format,
		Column:            l.Column,
		MaxBytes:          l.MaxBytes,
		MaxShrink:         float64(l.MaxShrink) / 100,
		MaxGrowth:         float64(l.MaxGrowth),
		Exact:             l.Match == "exact",
		Override:          l.Override,
		AllowPublicSuffix: l.AllowPublicSuffix,
		PublicReason:      l.PublicReason,
		Action:            verdict.ActionOf(l.Action),
		HeaderAction:      verdict.ActionOf(l.HeaderAction),
		PerRecipient:      l.PerRecipient,
		Whole:             l.Managed,
		Begins:            l.Managed,
	}
	switch {
	case l.Instead != "":
		list.Paths = []string{text.EscapeGlob(l.Instead)}
	case !l.InDNS():
		list.Paths = []string{l.Files()}
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
	var err error
	if list.ProvenBy, err = provenBy(l.ProvenBy); err != nil {
		return list, err
	}
	for _, name := range l.Stage {
		var stage verdict.Stage
		if err := stage.UnmarshalText([]byte(name)); err != nil {
			return list, err
		}
		list.Stages |= stage
	}
	return list, nil
}
