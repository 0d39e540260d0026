package listfiles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/store"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/setup"
	"spamgate/internal/term"
)

// Located is an entry with its list and file.
type Located struct {
	List  *List
	file  string
	Entry listfile.Entry
}

func (f Located) At() EntryInfo { return NewEntryInfo(f.List.Name, f.file, f.Entry) }

// Over reports whether the entry has expired.
func (f Located) Over() bool { return f.Entry.Until != 0 && f.Entry.Until <= time.Now().Unix() }

// ErrIncomplete ends a command that could not read all lists.
var ErrIncomplete = errors.New("not all lists could be read, so there may be more")

// Readable returns the lists whose files exist, and reports the others on stderr.
func Readable(c *config.Config, stderr io.Writer) []*List {
	var lists []*List
	for _, l := range WithFiles(c) {
		list, err := New(l)
		if err != nil {
			fmt.Fprintf(term.Escape(stderr), "spamgate: left out: %v\n", err)
			continue
		}
		lists = append(lists, list)
	}
	return lists
}

// Scan reads the files of lists.
type Scan struct {
	Ctx    context.Context
	Bar    *term.FileProgress
	Stderr io.Writer
	Failed bool // a file could not be read
}

// NewScan prepares to read the files of lists, with one progress bar for all.
func NewScan(ctx context.Context, lists []*List, stderr io.Writer) *Scan {
	var files []string
	for _, l := range lists {
		files = append(files, l.Paths...)
	}
	return &Scan{Ctx: ctx, Bar: term.NewFileProgress(stderr, files...), Stderr: stderr}
}

// File reads one file.
func (s *Scan) File(files store.Opener, path string, o listfile.Options, entry func(listfile.Entry) error, problem func(listfile.Problem)) (listfile.Result, error) {
	in, err := OpenListFile(s.Ctx, files, path, s.Bar)
	if err != nil {
		return listfile.Result{}, err
	}
	defer in.Close()
	entries := listfile.NewReader(in, o)
	entries.Problem = problem
	for e, err := range entries.All() {
		if err == nil {
			err = entry(e)
		}
		if err != nil {
			return listfile.Result{}, fmt.Errorf("%s: %w", term.ShortPath(path), err)
		}
	}
	return entries.Result(), nil
}

// OpenListFile opens a file of a list. What is read of it ends with ctx, and shows
// on bar.
func OpenListFile(ctx context.Context, files store.Opener, path string, bar *term.FileProgress) (*Input, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, WithAuthority(err, WhoServes)
	}
	return &Input{path, bar.Reader(Stoppable(ctx, f), path), func() { f.Close() }}, nil
}

// Lists reads all files of the lists. A list that cannot be read is reported and skipped.
func (s *Scan) Lists(lists []*List, each func(Located) error) error {
	defer s.Bar.Finish()
	for _, l := range lists {
		if err := s.list(l, nil, each); err != nil {
			return err
		}
	}
	return nil
}

// list reads the files of a list. If wanted is not nil it may leave out other entries.
func (s *Scan) list(l *List, wanted *listedit.Wanted, each func(Located) error) error {
	for _, path := range l.Paths {
		var failed error
		entry := func(e listfile.Entry) error {
			failed = each(Located{l, path, e})
			return failed
		}
		err := s.file(l, path, wanted, entry)
		if failed != nil || s.Ctx.Err() != nil {
			return err
		}
		if err != nil {
			s.Failed = true
			s.Bar.Finish()
			fmt.Fprintf(term.Escape(s.Stderr), "spamgate: left out: list %s: %v\n", l.Name, err)
		}
	}
	return nil
}

func (s *Scan) file(l *List, path string, wanted *listedit.Wanted, entry func(listfile.Entry) error) error {
	if wanted != nil && l.plainFile(path) {
		err := s.wantedOf(l, path, wanted, entry)
		if !errors.Is(err, listedit.ErrPacked) {
			return err
		}
	}
	_, err := s.File(setup.Opener(l.List), path, l.Options, entry, nil)
	return err
}

// wantedOf reads the lines of a plain file that are wanted.
func (s *Scan) wantedOf(l *List, path string, wanted *listedit.Wanted, entry func(listfile.Entry) error) error {
	f, err := setup.Opener(l.List).Open(path)
	if err != nil {
		return WithAuthority(err, WhoServes)
	}
	defer f.Close()
	in := struct {
		io.Reader
		io.Seeker
	}{s.Bar.Reader(Stoppable(s.Ctx, f), path), f}
	if err := listedit.FindWanted(in, l.Options, wanted, entry); err != nil {
		return fmt.Errorf("%s: %w", term.ShortPath(path), err)
	}
	return nil
}

// Keys finds the entries of the lists that have one of the keys, in the order of their
// files. It reads the lists whose indexes cannot tell: of those with entries for recipients
// all entries are found. A list that cannot be read is reported and skipped.
func (s *Scan) Keys(lists []*List, indexes *Indexes, keys []string, each func(Located) error) error {
	defer s.Bar.Finish()
	wanted := &listedit.Wanted{Keys: keys}
	for _, l := range lists {
		if index := indexes.Of(l); index != nil && !l.PerRecipient {
			if found, all, err := index.Find(keys); err == nil && all {
				for _, f := range found {
					if err := each(f); err != nil {
						return err
					}
				}
				continue
			}
		}
		some := wanted
		if l.PerRecipient {
			some = nil
		}
		if err := s.list(l, some, each); err != nil {
			return err
		}
	}
	return nil
}

// Relations finds the entries of all lists that are the same as some entries, cover them or
// are covered by them.
type Relations struct {
	keys    map[string]bool
	entries map[string][]Located
	names   map[string][]Located // the first plain entries for senders at a domain or below it
	more    map[string]int       // how many there are beyond those
}

func NewRelations() *Relations {
	return &Relations{map[string]bool{}, map[string][]Located{}, map[string][]Located{}, map[string]int{}}
}

// maxWithin bounds the stored entries for senders at a domain.
const maxWithin = 20

// DomainOf returns the domain of an entry that matches any sender at or below it, or "" for
// other entries.
func DomainOf(e listfile.Entry) string {
	switch e.Kind {
	case sender.KindDomain:
		return e.Key
	case sender.KindSubdomains:
		return strings.TrimPrefix(e.Key, "*.")
	case sender.KindAtDomain:
		return strings.TrimPrefix(e.Key, "@")
	}
	return ""
}

// Ask adds an entry to look for.
func (r *Relations) Ask(e listfile.Entry) {
	r.keys[listedit.Key(e)] = true
	for _, key := range listedit.CoveringEntry(e) {
		r.keys[key] = true
	}
}

// AskWithin adds an entry to look for, with the entries that match some of the senders
// that it matches. Finding these takes longer.
func (r *Relations) AskWithin(e listfile.Entry) {
	r.Ask(e)
	if name := DomainOf(e); name != "" && e.For == "" {
		r.names[name] = nil
	}
}

// Read looks into the lists, and reads those that have no index. Edits are
// what was changed since the indexes were opened.
func (r *Relations) Read(ctx context.Context, lists []*List, indexes *Indexes, edits []Edit, stderr io.Writer) error {
	if len(r.keys) == 0 {
		return nil
	}
	var read []*List
	for _, l := range lists {
		if indexes.Of(l) == nil {
			read = append(read, l)
		}
	}
	s := NewScan(ctx, read, stderr)
	defer s.Bar.Finish()
	keys := slices.Collect(maps.Keys(r.keys))
	wanted := &listedit.Wanted{Keys: keys, Below: slices.Collect(maps.Keys(r.names))}
	for _, l := range lists {
		if index := indexes.Of(l); index != nil && r.readIndex(index, keys, edits) == nil {
			continue
		}
		if err := s.list(l, wanted, func(f Located) error {
			r.note(f)
			for name := range r.names {
				r.noteWithin(name, f)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// readIndex looks into an index. With an error it has noted nothing.
func (r *Relations) readIndex(index *Index, keys []string, edits []Edit) error {
	found, _, err := index.Find(keys) // what it lacks does not match
	if err != nil {
		return err
	}
	removed := 0
	for _, d := range edits {
		removed += len(d.Removed)
	}
	within, more := map[string][]Located{}, map[string]int{}
	for name := range r.names {
		if within[name], more[name], err = index.below(name, maxWithin+removed); err != nil {
			return err
		}
	}
	for _, f := range found {
		if f, ok := apply(edits, f); ok {
			r.note(f)
		}
	}
	for name, some := range within {
		for _, f := range some {
			if f, ok := apply(edits, f); ok {
				r.noteWithin(name, f)
			}
		}
		r.more[name] += more[name]
	}
	for _, d := range edits {
		for _, e := range d.Added {
			if slices.Contains(index.list.Paths, d.Path) {
				r.note(Located{index.list, d.Path, e})
			}
		}
	}
	return nil
}

// note stores an entry that has one of the keys.
func (r *Relations) note(f Located) {
	if key := listedit.Key(f.Entry); r.keys[key] && !f.Over() {
		r.entries[key] = append(r.entries[key], f)
	}
}

// RelationsUnknown reports that a change was made, but that related entries could not be
// read.
func RelationsUnknown(stderr io.Writer, err error) {
	fmt.Fprintf(stderr, "spamgate: it is changed; which other entries match the same senders is not known: %v\n", err)
}

// noteWithin stores an entry for senders at the domain or below it.
func (r *Relations) noteWithin(name string, f Located) {
	if !listedit.Below(f.Entry.Key, name) || f.Entry.For != "" || f.Entry.Exception || f.Over() {
		return
	}
	if len(r.names[name]) == maxWithin {
		r.more[name]++
		return
	}
	r.names[name] = append(r.names[name], f)
}

// Within returns entries other than e that match some of the senders that e matches, and
// the number of further ones.
func (r *Relations) Within(e listfile.Entry) (some []Located, more int) {
	name := DomainOf(e)
	for _, f := range r.names[name] {
		below := strings.TrimSuffix(f.Entry.Key, name)
		switch {
		case f.Entry.Key == e.Key:
		case e.Kind == sender.KindAtDomain && !strings.HasSuffix(below, "@"): // for other domains, or covering it
		case e.Kind == sender.KindSubdomains && (below == "" || strings.HasSuffix(below, "@")): // likewise
		default:
			some = append(some, f)
		}
	}
	return some, r.more[name]
}

// Same returns the entries with the same key, exceptions apart.
func (r *Relations) Same(e listfile.Entry) []Located { return plainOnes(r.entries[listedit.Key(e)]) }

// Covering returns the entries that match every sender that e matches.
func (r *Relations) Covering(e listfile.Entry) []Located {
	var all []Located
	for _, key := range listedit.CoveringEntry(e) {
		all = append(all, plainOnes(r.entries[key])...)
	}
	return all
}

func plainOnes(entries []Located) []Located {
	var plain []Located
	for _, f := range entries {
		if !f.Entry.Exception {
			plain = append(plain, f)
		}
	}
	return plain
}
