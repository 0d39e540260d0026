package main

import (
	"slices"
	"time"

	"spamgate/blocklist"
	"spamgate/internal/admin"
	"spamgate/internal/config"
)

// statusOf describes lists and filter in the words of the admin socket. What only a running
// gate knows is for the caller to add.
func statusOf(c *config.Config, stats blocklist.SetStats) admin.Status {
	status := admin.Status{
		Time: time.Now().UTC(),
		Filter: admin.Filter{
			Kind:      string(stats.Kind),
			Family:    stats.Family,
			Bits:      stats.Bits,
			Hashes:    stats.Hashes,
			FillRatio: stats.FillRatio,
			FPR:       stats.FPR,
			Capacity:  stats.Capacity,
			Bytes:     stats.FilterBytes,
			Warning:   stats.Warning,
		},
	}
	for _, l := range stats.Lists {
		path := ""
		if i := listIndex(c, l.Name); i >= 0 {
			path = c.Lists[i].Path
		}
		status.Lists = append(status.Lists, listStatus(l, path))
	}
	return status
}

// listIndex is the place of a list in the configuration, -1 where it has none.
func listIndex(c *config.Config, name string) int {
	return slices.IndexFunc(c.Lists, func(l config.List) bool { return l.Name == name })
}

func listStatus(l blocklist.ListStats, path string) admin.List {
	a := admin.List{
		Files:       []admin.File{},
		Name:        l.Name,
		Type:        l.Type.String(),
		Path:        path,
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
		Notes:       l.Notes,
		Loaded:      timeOrNil(l.Loaded),
		NextExpiry:  timeOrNil(l.NextExpiry),
		LastGood:    l.LastGood,
		Held:        l.Held,
		Acceptable:  l.HeldSum != "" || l.Retry,
		IndexBytes:  l.Bytes,
		FillRatio:   l.FillRatio,
		FPR:         l.FPR,
	}
	if l.Type == blocklist.Block {
		a.Action = l.Action.String()
		if l.HeaderAction != blocklist.Accept && l.HeaderAction != l.Action {
			a.HeaderAction = l.HeaderAction.String()
		}
	}
	if l.Err != nil {
		a.Error, a.ErrorSince = l.Err.Error(), timeOrNil(l.Since)
	}
	for _, f := range l.Files {
		a.Files = append(a.Files, admin.File{Path: f.Path, Bytes: f.Size, Modified: f.Modified.UTC(), Entries: f.Entries, Invalid: f.Invalid})
	}
	for _, p := range l.Problems {
		a.Problems = append(a.Problems, admin.Problem{File: p.File, Line: p.Line, Text: p.Text, What: p.What, Hint: p.Hint})
	}
	return a
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
