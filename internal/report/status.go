package report

import (
	"slices"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/verdict"
	"spamgate/internal/admin"
	"spamgate/internal/config"
	"spamgate/internal/dnslist"
	"spamgate/internal/fetch"
	"spamgate/internal/setup"
)

// Status returns the state of the lists and the filter for the admin socket. The caller adds
// what only a running gate knows.
func Status(c *config.Config, stats blocklist.SetStats) admin.Status {
	status := admin.Status{
		Time: time.Now().UTC(),
		Filter: admin.Filter{
			Kind:      string(stats.Kind),
			Family:    stats.Family,
			Bits:      stats.Bits,
			Hashes:    stats.Hashes,
			FillRatio: stats.FillRatio,
			FPR:       admin.Rate(stats.FPR),
			Capacity:  stats.Capacity,
			Bytes:     stats.FilterBytes,
			Warning:   stats.Warning,
		},
	}
	for _, l := range stats.Lists {
		list := listStatus(l)
		if i := setup.ListIndex(c, l.Name); i >= 0 {
			list.Path, list.Managed, list.Default = c.Lists[i].Path, c.Lists[i].Managed, c.Lists[i].Default
		}
		status.Lists = append(status.Lists, list)
	}
	return status
}

func listStatus(l blocklist.ListStats) admin.List {
	a := admin.List{
		Files:       []admin.File{},
		Name:        l.Name,
		Type:        l.Type.String(),
		URL:         l.URL,
		Format:      string(l.Format),
		Packed:      l.Packed,
		Entries:     l.Entries,
		Exceptions:  l.Exceptions,
		Duplicates:  l.Duplicates,
		Invalid:     l.Invalid,
		Unsupported: l.Unsupported,
		Expired:     l.Expired,
		Protected:   l.Protected,
		Disallowed:  l.Disallowed,
		ListsNobody: l.ListsNobody(),
		Notes:       l.Notes,
		Loaded:      TimeOrNil(l.Loaded),
		NextExpiry:  TimeOrNil(l.NextExpiry),
		LastGood:    l.LastGood,
		Held:        l.Held,
		Acceptable:  l.HeldSum != "" || l.Retry,
		IndexBytes:  l.Bytes,
		FillRatio:   l.FillRatio,
		FPR:         admin.Rate(l.FPR),
	}
	a.PerRecipient, a.ProvenBy = l.PerRecipient, l.ProvenBy.String()
	if l.Type == blocklist.Block {
		a.Action = l.Action.String()
		if l.HeaderAction != verdict.Accept && l.HeaderAction != l.Action {
			a.HeaderAction = l.HeaderAction.String()
		}
	}
	if l.Zone != "" {
		a.DNS = &admin.DNSList{Zone: l.Zone}
	}
	a.Pinned = Pinned(l.Pinned)
	if l.Err != nil {
		a.Error, a.ErrorSince = l.Err.Error(), TimeOrNil(l.Since)
	}
	for _, f := range l.Files {
		a.Files = append(a.Files, admin.File{Path: f.Path, Bytes: f.Size, Modified: f.Modified.UTC(), Entries: f.Entries, Invalid: f.Invalid})
	}
	for _, p := range l.Problems {
		a.Problems = append(a.Problems, admin.Problem{File: p.File, Line: p.Line, Text: p.Text, What: p.What, Hint: p.Hint})
	}
	return a
}

// Pinned returns the pin of a list; nil if it has none.
func Pinned(p *blocklist.Pin) *admin.Pinned {
	if p == nil {
		return nil
	}
	return &admin.Pinned{SHA256: p.Sum, Entries: p.Entries, Since: p.Since.UTC(), Who: p.Who, Why: p.Why}
}

// AddDNS adds the state of the lists in DNS, as their client describes it.
func AddDNS(s *admin.Status, all []dnslist.Status) {
	for i := range s.Lists {
		pos := slices.IndexFunc(all, func(d dnslist.Status) bool { return d.Name == s.Lists[i].Name })
		if s.Lists[i].DNS == nil || pos < 0 {
			continue
		}
		d := all[pos]
		unknown := map[string]uint64{}
		for cause, n := range d.Counts.Unknown {
			unknown[string(cause)] = n
		}
		s.Lists[i].DNS = &admin.DNSList{
			Zone: s.Lists[i].DNS.Zone, State: string(d.State), Reason: d.Reason, Warning: d.Warning,
			Since: TimeOrNil(d.Since), Checked: TimeOrNil(d.Checked), NextCheck: TimeOrNil(d.NextCheck),
			Questions: d.Counts.Questions, CacheHits: d.Counts.CacheHits,
			Listed: d.Counts.Listed, NotListed: d.Counts.NotListed, Unknown: unknown,
		}
	}
}

func TimeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// AddFetched adds the state of the copies of lists from URLs, which "lists fetch" updates as
// well.
func AddFetched(c *config.Config, s *admin.Status) {
	for i := range s.Lists {
		l := &s.Lists[i]
		pos := setup.ListIndex(c, l.Name)
		if pos < 0 || c.Lists[pos].URL == "" {
			continue
		}
		good, replaced := fetch.LastGood(setup.FetchSource(c.Lists[pos]))
		if good.IsZero() && !replaced {
			continue
		}
		if l.Fetch == nil {
			l.Fetch = &admin.Fetch{}
		}
		f := l.Fetch
		f.Replaced = replaced
		if good.IsZero() {
			continue
		}
		if f.LastGood == nil || f.LastGood.Before(good) {
			f.LastGood = TimeOrNil(good)
		}
		if f.LastTry != nil && f.LastTry.Before(good) { // it has succeeded since
			f.LastTry, f.Error, f.Failures = f.LastGood, "", 0
		}
	}
}

// FetchStatus returns the state of fetching a list's URL.
func FetchStatus(s fetch.Status, ok bool) *admin.Fetch {
	if !ok {
		return nil
	}
	f := &admin.Fetch{LastTry: TimeOrNil(s.LastTry), LastGood: TimeOrNil(s.LastGood), NextTry: TimeOrNil(s.NextTry), Failures: s.Failures}
	f.Sequence, f.Expires = s.Sequence, TimeOrNil(s.Expires)
	if s.Err != nil {
		f.Error = s.Err.Error()
	}
	return f
}

// LastUpdate returns when the list in use was last changed, or, of a list from a URL, when its
// server last confirmed the copy; nil if that is not known.
func LastUpdate(l *admin.List) *time.Time {
	if l.Fetch != nil && l.Fetch.LastGood != nil {
		return l.Fetch.LastGood
	}
	return NewestFile(l)
}

func NewestFile(l *admin.List) *time.Time {
	var newest *time.Time
	for i := range l.Files {
		if t := &l.Files[i].Modified; newest == nil || t.After(*newest) {
			newest = t
		}
	}
	return newest
}
