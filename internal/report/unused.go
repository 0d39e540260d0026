package report

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/hits"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/store"
	"spamgate/internal/admin"
	"spamgate/internal/config"
)

// CheckConfirms returns an error if matches of single entries are not known, because the
// filter alone decides.
func CheckConfirms(c *config.Config, list string) error {
	if c.Filter.Confirm {
		return nil
	}
	return fmt.Errorf("list %s: which entries match is not known, since the filter alone decides (confirm = false in [filter])", list)
}

// Unused is the question for entries of a list that have had no match since a day.
type Unused struct {
	List  string
	Since time.Time
	Known *hits.Snapshot // the matches on this gate

	// Elsewhere, if not nil, reports whether the entry of a key has matched on another gate
	// (segment.Entry.Indexed), and Fleet says which ones that is about.
	Elsewhere func(indexed string) bool
	Fleet     *admin.UnusedFleet
}

// UnusedEntries calls begin, and then each with every such entry.
func UnusedEntries(ctx context.Context, set *blocklist.Set, u Unused, begin func(admin.UnusedHeader) error, each func(admin.UnusedEntry) error) (end admin.UnusedEnd, err error) {
	first := hits.DayOf(u.Since)
	head := admin.UnusedHeader{List: u.List, Since: first.String(), Known: u.Known.Known().String(), Fleet: u.Fleet}
	if err := begin(head); err != nil {
		return end, err
	}
	index, key, files, ok := set.Index(u.List)
	if !ok {
		return end, nil // it has no entries
	}
	var failed error
	err = index.Records(func(r segment.Record) bool {
		if end.Entries++; end.Entries%4096 == 0 && ctx.Err() != nil {
			failed = context.Cause(ctx)
			return false
		}
		last := u.Known.Last(key.Hash([]byte(r.Indexed())))
		if last >= first || u.Elsewhere != nil && u.Elsewhere(r.Indexed()) {
			return true
		}
		end.Unused++
		e := admin.UnusedEntry{Entry: r.Key, Exception: r.Exception, Line: r.Line}
		if r.File >= 0 && r.File < len(files) {
			e.File = files[r.File]
		}
		if r.Exception {
			e.Entry = "!" + r.Key
		}
		if r.For != "" {
			e.Entry = r.For + " " + e.Entry
		}
		if last > 0 {
			e.Last = last.String()
		}
		failed = each(e)
		return failed == nil
	})
	return end, errors.Join(err, failed)
}

// HitsName returns the name of the file in the state directory that holds a list's hits.
func HitsName(list string) string { return path.Join(store.ListName(list), "hits") }

// HitsKey returns an identifier of the key with which entries are hashed. Ok is false if no
// list has an entry.
func HitsKey(set *blocklist.Set) (key uint64, ok bool) {
	for _, l := range set.Stats().Lists {
		if _, secret, _, ok := set.Index(l.Name); ok {
			return secret.Hash([]byte("spamgate hits")), true
		}
	}
	return 0, false
}
