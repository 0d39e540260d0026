package store

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"spamgate/blocklist"
)

// log writes what a swap has changed. Old is nil for the first Set.
func (s *Store) log(old, set *snapshot) {
	log := s.config.Logger
	stats := set.set.Stats()
	if old == nil || old.set.Generation() != stats.Generation {
		logSwap(log, old, set, stats)
		if stats.Warning != "" {
			log.Warn("filter over capacity", "warning", stats.Warning)
		}
	}
	for i, src := range s.sources {
		if !set.versions[i].sameProblems(old.versionOf(src.list.Name)) {
			logProblems(log, stats.Lists[i])
		}
		src.logState(log, stats.Lists[i])
	}
}

// sameProblems reports whether another version has the same lines left out, wherever they
// stand. A list that changes every minute need not repeat every minute what has long
// been known.
func (v *version) sameProblems(other *version) bool {
	return v == other || other != nil && v.Invalid == other.Invalid &&
		v.Unsupported == other.Unsupported && v.Protected == other.Protected && v.Disallowed == other.Disallowed &&
		slices.EqualFunc(v.Problems, other.Problems, func(p, q blocklist.FileProblem) bool {
			return p.File == q.File && p.Text == q.Text && p.What == q.What
		}) &&
		slices.Equal(v.notes(), other.notes())
}

// logSwap logs which lists are new or changed, and their entries before and after.
func logSwap(log *slog.Logger, old, set *snapshot, stats blocklist.SetStats) {
	var names []string
	var before, after, invalid int
	for i, v := range set.versions {
		was := old.versionOf(set.names[i])
		if was == v {
			continue
		}
		names = append(names, set.names[i])
		if was != nil {
			before += was.Entries
		}
		after += v.Entries
		invalid += v.Invalid
	}
	if names == nil {
		return // the configuration alone has changed
	}
	level := slog.LevelInfo
	if old == nil {
		level = slog.LevelDebug // whoever starts the Store says what it loaded
	}
	log.Log(context.Background(), level, "lists live", "generation", stats.Generation, "list", strings.Join(names, ","),
		"entries_before", before, "entries", after, "invalid", invalid,
		"duration", stats.Took.Round(time.Millisecond).String())
}

// logProblems warns of the lines of a list that were left out, and of what was noted about
// others.
func logProblems(log *slog.Logger, l blocklist.ListStats) {
	for sort, text := range []struct {
		each, all string
		count     int
	}{
		invalidLine:     {"invalid line skipped", "invalid lines", l.Invalid},
		unsupportedLine: {"unsupported line skipped", "unsupported lines", l.Unsupported},
		protectedLine:   {"entry left out, it covers a protected name", "entries that cover protected names left out", l.Protected},
		disallowedLine:  {"entry left out, lists from a URL may not have it", "entries left out that lists from a URL may not have", l.Disallowed},
	} {
		shown := 0
		for _, p := range l.Problems {
			if sortOf(&p) == problemSort(sort) && shown < blocklist.MaxProblems {
				shown++
				log.Warn(text.each, "list", l.Name, "file", p.File, "line", p.Line,
					"text", p.Text, "problem", p.What, "hint", p.Hint)
			}
		}
		if text.count > 0 {
			log.Warn(text.all, "list", l.Name, "count", text.count, "entries", l.Entries)
		}
	}
	for _, note := range l.Notes {
		log.Warn("about the list's lines", "list", l.Name, "note", note)
	}
}

// logBuilt logs that an index was made, at level info if that took a second or more.
func logBuilt(log *slog.Logger, list string, entries int, took time.Duration) {
	level := slog.LevelDebug
	if took >= time.Second {
		level = slog.LevelInfo
	}
	log.Log(context.Background(), level, "index built", "list", list, "entries", entries,
		"duration", took.Round(time.Millisecond).String())
}

// logState logs once that a list is held, and once that it no longer is.
func (s *source) logState(log *slog.Logger, l blocklist.ListStats) {
	s.logPin(log, l)
	text := errorText(l.Err)
	if text == s.logged {
		return
	}
	s.logged = text
	switch {
	case l.Err == nil:
		log.Info("list is good again", "list", l.Name, "entries", l.Entries)
	case l.LastGood:
		log.Warn("list held, its last good version serves", "list", l.Name, "error", text,
			"entries", l.Entries, "loaded", l.Loaded.Format(time.RFC3339))
	default:
		log.Warn("list without a usable version, it is empty", "list", l.Name, "error", text)
	}
}

// logPin logs once that a list is pinned, and once that it no longer is.
func (s *source) logPin(log *slog.Logger, l blocklist.ListStats) {
	if samePin(s.loggedPin, l.Pinned) {
		return
	}
	s.loggedPin = l.Pinned
	if p := l.Pinned; p != nil {
		log.Warn("list pinned, changes of it are held", "list", l.Name, "entries", l.Entries, "sha256", p.Sum,
			"since", p.Since.Format(time.RFC3339), "by", p.Who, "why", p.Why)
		return
	}
	log.Info("list unpinned", "list", l.Name, "entries", l.Entries)
}

// describeList returns the stats of a list as it serves.
func describeList(l *List, r scanResult) blocklist.ListStats {
	v := r.version()
	stats := blocklist.ListStats{
		Name: l.Name, Type: l.Type, Action: l.Action, HeaderAction: l.HeaderAction, Stages: l.Stages,
		PerRecipient: l.PerRecipient, ProvenBy: l.ProvenBy,
		URL: l.URL, Zone: l.Zone,
		Entries: v.Entries, Exceptions: v.Exceptions, Duplicates: int(v.index.Segment().Duplicates()),
		Invalid: v.Invalid, Unsupported: v.Unsupported,
		Expired: v.Expired, Protected: v.Protected, Disallowed: v.Disallowed, Skipped: v.Skipped, NextExpiry: v.nextUntil(),
		Files:    v.Files,
		Problems: v.Problems,
		Notes:    v.notes(),
		Bytes:    v.index.Segment().Size(),
		Loaded:   v.Loaded,
		Err:      r.err,
		LastGood: r.err != nil && r.good != nil,
		Since:    r.since,
		Held:     errors.Is(r.err, ErrHeld),
		Retry:    errors.Is(r.err, ErrKilled),
		Pinned:   r.pin,
	}
	if r.good != nil {
		stats.Sum = sumOf(v.stamps)
	}
	if acceptable(r.err) {
		stats.HeldSum = sumOf(r.stamps)
	}
	if len(v.Files) > 0 {
		stats.Format, stats.Packed = v.Files[0].Format, v.Files[0].Packed
	}
	return stats
}
