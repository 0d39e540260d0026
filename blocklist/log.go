package blocklist

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// log writes what a swap has changed. Old is nil for the first Set.
func (s *Store) log(old, set *Set, took time.Duration) {
	log := s.config.Logger
	stats := set.Stats()
	if old == nil || old.generation != set.generation {
		logSwap(log, old, set, took)
		if stats.Warning != "" {
			log.Warn("filter over capacity", "warning", stats.Warning)
		}
	}
	for i, src := range s.sources {
		if !set.lists[i].version.sameProblems(old.versionOf(src.list.Name)) {
			logProblems(log, stats.Lists[i])
		}
		src.logState(log, stats.Lists[i])
	}
}

// sameProblems reports that another version has the same invalid lines, wherever
// they stand in it: a list that changes every minute need not say every minute
// what has long been known.
func (v *version) sameProblems(other *version) bool {
	return v == other || other != nil && v.invalid == other.invalid &&
		slices.EqualFunc(v.problems, other.problems, func(p, q FileProblem) bool {
			return p.File == q.File && p.Text == q.Text && p.What == q.What
		})
}

// versionOf is the version of a list by its name; nil if the Set, which may be
// nil, has no such list.
func (s *Set) versionOf(name string) *version {
	if s != nil {
		for i := range s.lists {
			if s.lists[i].Name == name {
				return s.lists[i].version
			}
		}
	}
	return nil
}

// logSwap is one line: the lists that are new or changed, and their entries
// before and after.
func logSwap(log *slog.Logger, old, set *Set, took time.Duration) {
	var names []string
	var before, after, invalid int
	for i := range set.lists {
		l := &set.lists[i]
		was := old.versionOf(l.Name)
		if was == l.version {
			continue
		}
		names = append(names, l.Name)
		if was != nil {
			before += was.entries
		}
		after += l.version.entries
		invalid += l.version.invalid
	}
	if names == nil {
		return // the configuration alone has changed
	}
	level := slog.LevelInfo
	if old == nil {
		level = slog.LevelDebug // whoever starts the Store says what it loaded
	}
	log.Log(context.Background(), level, "lists live", "generation", set.generation, "list", strings.Join(names, ","),
		"entries_before", before, "entries", after, "invalid", invalid,
		"duration", took.Round(time.Millisecond).String())
}

// logProblems warns of the invalid lines of a list.
func logProblems(log *slog.Logger, l ListStats) {
	for i, p := range l.Problems {
		if i == MaxProblems {
			break
		}
		log.Warn("invalid line skipped", "list", l.Name, "file", p.File, "line", p.Line,
			"text", p.Text, "problem", p.What, "hint", p.Hint)
	}
	if l.Invalid > 0 {
		log.Warn("invalid lines", "list", l.Name, "count", l.Invalid, "entries", l.Entries)
	}
}

// logState says, once, that a list is held, and that it no longer is.
func (s *source) logState(log *slog.Logger, l ListStats) {
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
