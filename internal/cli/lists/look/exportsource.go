package look

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/setup"
	"spamgate/internal/term"
)

// exportSource is what export writes: an index, in the order of the list's lines.
type exportSource struct {
	listfiles.InOrder
	list    config.List
	stats   blocklist.ListStats // of what the gate has read; empty with --all
	expired []expiredEntry      // are written as well
	serial  uint32
}

// expiredEntry is an entry that has expired, with its file.
type expiredEntry struct {
	listfile.Entry
	path string
}

// readServed reads a list as the gate does: with the same code, and from the version that
// serves if the files on disk are held.
func readServed(s *session.Session, l config.List) (*exportSource, error) {
	e, err := openServed(s, l)
	if err != nil {
		return nil, err
	}
	return e, e.Sort()
}

// openServed is readServed without Sort.
func openServed(s *session.Session, l config.List) (*exportSource, error) {
	started := time.Now()
	set, stats, err := s.Read(l)
	if s.Err() != nil {
		return nil, s.Err()
	}
	if err != nil {
		return nil, setup.ExplainMissing(s.Config, err)
	}
	e := &exportSource{list: l, stats: stats[0]}
	index, key, files, ok := set.Index(l.Name)
	if !ok {
		return nil, fmt.Errorf("list %s has no version that could be written: %w", l.Name, e.stats.Err)
	}
	e.List, e.Index, e.Key, e.Files = l.Name, index, key, files
	if e.stats.LastGood {
		fmt.Fprintf(term.Escape(s.Stderr), "spamgate: list %s: the version that serves is written, since what is on disk does not: %v\n", l.Name, e.stats.Err)
	}
	e.serial = e.serialOf(s.Config, started)
	return e, nil
}

// readAll reads all valid entries of the files on disk.
func readAll(s *session.Session, l config.List, withExpired bool) (*exportSource, error) {
	list, err := listfiles.New(l)
	if err != nil {
		return nil, err
	}
	e := &exportSource{list: l, InOrder: listfiles.InOrder{List: l.Name, Key: listfiles.NewKey(), Files: list.Paths}}
	now := time.Now().Unix()
	var mu sync.Mutex // several workers read a file
	b := listfiles.NewBuilder(s, e.Key)
	defer b.Builder.Abort()
	path := ""
	b.Leave = func(entry listfile.Entry) bool {
		over := entry.Until != 0 && entry.Until <= now
		if over && withExpired {
			mu.Lock()
			defer mu.Unlock()
			e.expired = append(e.expired, expiredEntry{entry, path})
		}
		return over
	}
	scan := listfiles.NewScan(s, []*listfiles.List{list}, s.Stderr)
	defer scan.Bar.Finish()
	for _, path = range list.Paths {
		in, err := listfiles.OpenListFile(s, setup.Opener(l), path, scan.Bar)
		if err != nil {
			return nil, err
		}
		_, err = b.Add(in, list.Options)
		in.Close()
		if err != nil {
			return nil, fmt.Errorf("list %s: %s: %w", l.Name, term.ShortPath(path), err)
		}
	}
	if e.Index, err = b.Finish(); err != nil {
		return nil, fmt.Errorf("list %s: %w", l.Name, err)
	}
	slices.SortStableFunc(e.expired, func(a, b expiredEntry) int {
		return cmp.Or(strings.Compare(a.path, b.path), cmp.Compare(a.Line, b.Line))
	})
	e.serial = e.serialOf(s.Config, time.Time{})
	return e, e.Sort()
}

// serialOf returns the serial number of what is written: the time, in seconds since 1970,
// when a gate read this version first. If none has, it is the time of the newest of the
// files that decide: those of the list, and the configuration. An entry that expires
// changes what is written and no file: then it is the present time.
func (e *exportSource) serialOf(c *config.Config, started time.Time) uint32 {
	if loaded := e.stats.Loaded; !loaded.IsZero() && loaded.Before(started.Round(0)) {
		return uint32(loaded.Unix())
	}
	newest := int64(1)
	if e.stats.Expired > 0 {
		newest = started.Unix()
	}
	for _, path := range append([]string{c.File}, e.Files...) {
		if info, err := os.Stat(path); err == nil {
			newest = max(newest, info.ModTime().Unix())
		}
	}
	return uint32(newest)
}

// entries returns the list for [listfile.Write].
func (e *exportSource) entries() listfile.List {
	list := e.Entries()
	list.Entries = e.each
	return list
}

// each yields the entries of the index, and then those that have expired.
func (e *exportSource) each(yield func(listfile.Entry) bool) {
	for entry := range e.Each {
		if !yield(entry) {
			return
		}
	}
	if e.Err != nil {
		return
	}
	for _, x := range e.expired {
		if _, ok := e.Lookup(listedit.Key(x.Entry)); ok {
			continue // another entry counts
		}
		e.File = x.path
		if !yield(x.Entry) {
			return
		}
	}
}

// sayLeftOut reports what the gate leaves out.
func (e *exportSource) sayLeftOut(w io.Writer) {
	for _, p := range e.stats.Problems {
		if p.Protected || p.Disallowed {
			fmt.Fprintln(term.Escape(w), session.NewProblemAt(p.File, p.Problem))
		}
	}
	if counts := session.Also(e.stats.Protected, "protected", "protected") +
		session.Also(e.stats.Disallowed, "<> or name@ from a URL", "<> or name@ from a URL") +
		session.Also(e.stats.Expired, "expired", "expired") +
		session.Also(e.stats.Invalid, "invalid", "invalid"); counts != "" {
		fmt.Fprintf(w, "list %s: not written, as the gate leaves it out: %s; --all writes all that is valid,\nspamgate lists lint --list %s shows the rest\n",
			e.list.Name, strings.TrimPrefix(counts, ", "), term.ShellWord(e.list.Name))
	}
}
