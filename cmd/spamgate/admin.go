package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/hits"
	"spamgate/blocklist/segment"
	"spamgate/internal/admin"
	"spamgate/internal/config"
	"spamgate/internal/fetch"
	"spamgate/internal/listedit"
	"spamgate/internal/text"
	"spamgate/smtpfilter/nexthop"
)

// adminGate answers for the running gate on its socket.
type adminGate struct {
	started time.Time
	store   *blocklist.Store
	fetcher *fetch.Fetcher
	hits    *hits.Log
	now     atomic.Pointer[running] // replaced by a reload
}

// running is what the gate runs with.
type running struct {
	config *config.Config
	next   nexthop.Target
}

// Status is an admin.Gate's.
func (g *adminGate) Status() admin.Status {
	now, set := g.now.Load(), g.store.Set()
	s := statusOf(now.config, set.Stats())
	s.From = admin.FromGate
	s.Version, s.PID, s.Config, s.Started = version, os.Getpid(), now.config.File, timeOrNil(g.started)
	if file, err := filepath.Abs(s.Config); err == nil {
		s.Config = file
	}
	s.Generation = set.Generation()
	lookups, maybes := set.Lookups(), set.Maybes()
	s.Lookups, s.Maybes = &lookups, &maybes
	if now.config.Filter.Confirm { // else nobody knows
		wrong := set.FalsePositives()
		s.FalseMaybes = &wrong
	}
	for i := range s.Lists {
		l := &s.Lists[i]
		if now.config.Filter.Confirm {
			today := g.hits.Today(l.Name)
			l.HitsToday = &today
		}
		if l.URL != "" {
			l.Fetch = fetchStatus(g.fetcher.Status(l.Name))
		}
	}
	addFetched(now.config, &s)
	for _, state := range nexthop.States(now.next) {
		hop := admin.NextHop{Address: state.Target}
		if state.Known {
			hop.Up = &state.Up
		}
		s.NextHops = append(s.NextHops, hop)
	}
	return s
}

// addFetched adds what the copies of lists from URLs tell: "lists fetch" keeps
// them up to date, too.
func addFetched(c *config.Config, s *admin.Status) {
	for i := range s.Lists {
		l := &s.Lists[i]
		at := listIndex(c, l.Name)
		if at < 0 || c.Lists[at].URL == "" {
			continue
		}
		good, replaced := fetch.LastGood(fetchSource(c.Lists[at]))
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
			f.LastGood = timeOrNil(good)
		}
		if f.LastTry != nil && f.LastTry.Before(good) { // what failed then has gone well since
			f.LastTry, f.Error, f.Failures = f.LastGood, "", 0
		}
	}
}

// fetchStatus is how a list's URL was read.
func fetchStatus(s fetch.Status, ok bool) *admin.Fetch {
	if !ok {
		return nil
	}
	f := &admin.Fetch{LastTry: timeOrNil(s.LastTry), LastGood: timeOrNil(s.LastGood), NextTry: timeOrNil(s.NextTry), Failures: s.Failures}
	if s.Err != nil {
		f.Error = s.Err.Error()
	}
	return f
}

// Generation is an admin.Gate's.
func (g *adminGate) Generation() uint64 { return g.store.Set().Generation() }

// Rescan is an admin.Gate's.
func (g *adminGate) Rescan(ctx context.Context) (admin.Rescanned, error) {
	err := g.store.Rescan(ctx)
	set := g.store.Set()
	r := admin.Rescanned{Generation: set.Generation()}
	for _, l := range set.Stats().Lists {
		if l.Err != nil {
			r.Failed = append(r.Failed, admin.Failed{List: l.Name, Error: l.Err.Error(), Held: l.Held})
		}
	}
	// What is wrong with lists stands in Failed; anything else is an error.
	if err != nil && (len(r.Failed) == 0 || ctx.Err() != nil || errors.Is(err, blocklist.ErrClosed)) {
		return r, err
	}
	return r, nil
}

// Accept is an admin.Gate's.
func (g *adminGate) Accept(ctx context.Context, name, sum string) (admin.Accepted, error) {
	l, err := g.list(name)
	if err != nil {
		return admin.Accepted{}, err
	}
	before := l.Entries
	if sum != "" && sum != l.HeldSum { // it may not be there yet
		err = g.store.AcceptContent(name, sum)
	} else if _, err = heldSum(l); err == nil {
		err = g.store.Accept(ctx, name)
	}
	if err == nil {
		l, err = g.list(name)
	}
	if err != nil {
		return admin.Accepted{}, err
	}
	return admin.Accepted{Generation: g.Generation(), Entries: l.Entries, Before: before}, nil
}

// heldSum is the sum of what is held; empty where it is to be tried once more.
func heldSum(l blocklist.ListStats) (string, error) {
	switch {
	case l.HeldSum != "" || l.Retry:
		return l.HeldSum, nil
	case l.Held:
		return "", fmt.Errorf("list %s cannot be accepted as it is: %w", l.Name, l.Err)
	case l.Err != nil:
		return "", fmt.Errorf("list %s: %w: what is on disk cannot be used (%w); mend that first", l.Name, admin.ErrNothingHeld, l.Err)
	}
	return "", fmt.Errorf("list %s: %w: what is on disk serves, with %s", l.Name, admin.ErrNothingHeld, text.Count(l.Entries, "entry", "entries"))
}

// list is a list as it serves now.
func (g *adminGate) list(name string) (blocklist.ListStats, error) {
	return findStats(g.store.Set(), name)
}

func findStats(set *blocklist.Set, name string) (blocklist.ListStats, error) {
	var names []string
	for _, l := range set.Stats().Lists {
		if l.Name == name {
			return l, nil
		}
		names = append(names, l.Name)
	}
	return blocklist.ListStats{}, fmt.Errorf("%w as %q; there is %s", admin.ErrNoList, name, strings.Join(names, ", "))
}

// Unused is an admin.Gate's.
func (g *adminGate) Unused(ctx context.Context, name string, since time.Time, begin func(admin.UnusedHeader) error, each func(admin.UnusedEntry) error) (admin.UnusedEnd, error) {
	set := g.store.Set()
	if _, err := findStats(set, name); err != nil {
		return admin.UnusedEnd{}, err
	}
	if err := checkConfirms(g.now.Load().config, name); err != nil {
		return admin.UnusedEnd{}, err
	}
	return unusedEntries(ctx, set, name, g.hits.Snapshot(name), since, begin, each)
}

// checkConfirms is the error about a list of whose entries nobody knows which match.
func checkConfirms(c *config.Config, list string) error {
	if c.Filter.Confirm {
		return nil
	}
	return fmt.Errorf("list %s: which entries match is not known, since the filter alone decides (confirm = false in [filter])", list)
}

// unusedEntries goes through a list's entries for those without a match.
func unusedEntries(ctx context.Context, set *blocklist.Set, name string, known *hits.Snapshot, since time.Time, begin func(admin.UnusedHeader) error, each func(admin.UnusedEntry) error) (end admin.UnusedEnd, err error) {
	first := hits.DayOf(since)
	head := admin.UnusedHeader{List: name, Since: first.String(), Known: known.Known().String()}
	if err := begin(head); err != nil {
		return end, err
	}
	index, key, files, ok := set.Index(name)
	if !ok {
		return end, nil // it has no entries
	}
	var failed error
	err = index.Records(func(r segment.Record) bool {
		if end.Entries++; end.Entries%4096 == 0 && ctx.Err() != nil {
			failed = context.Cause(ctx)
			return false
		}
		last := known.Last(key.Hash([]byte(r.Key)))
		if last >= first {
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
		if last > 0 {
			e.Last = last.String()
		}
		failed = each(e)
		return failed == nil
	})
	return end, errors.Join(err, failed)
}

// Audit is an admin.Gate's.
func (g *adminGate) Audit(who admin.Peer, r admin.AuditRecord) error {
	record := &listedit.Record{
		Time: time.Now().UTC(), UID: -1, SudoUser: r.SudoUser,
		Command: r.Command, List: r.List, File: r.File, What: r.What, Why: r.Why,
	}
	if who.Known {
		record.UID = who.UID
		if u, err := user.LookupId(strconv.Itoa(who.UID)); err == nil {
			record.User = u.Username
		}
	}
	log := &listedit.Log{Dir: g.now.Load().config.State.Dir}
	return log.Append(record)
}

// hitsName is the file in the state directory where a list's hits are kept.
func hitsName(list string) string { return path.Join(blocklist.ListName(list), "hits") }

// hitsKey names the secret under which entries are hashed. Ok is false where no
// list has an entry, and so nobody knows.
func hitsKey(set *blocklist.Set) (key uint64, ok bool) {
	for _, l := range set.Stats().Lists {
		if _, secret, _, ok := set.Index(l.Name); ok {
			return secret.Hash([]byte("spamgate hits")), true
		}
	}
	return 0, false
}
