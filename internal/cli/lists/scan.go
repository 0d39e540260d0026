package lists

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/setup"
	"spamgate/internal/term"
)

// found is an entry, and where it stands.
type found struct {
	list  *listAt
	file  string
	entry listfile.Entry
}

func (f found) at() entryAt { return newEntryAt(f.list.Name, f.file, f.entry) }

// over reports whether the entry's time is over.
func (f found) over() bool { return f.entry.Until != 0 && f.entry.Until <= time.Now().Unix() }

// errIncomplete ends a command that has shown what it could.
var errIncomplete = errors.New("not all lists could be read, so there may be more")

// readableLists are the lists whose files are there. Of others it is said why they are left out.
func readableLists(c *config.Config, stderr io.Writer) []*listAt {
	var lists []*listAt
	for _, l := range c.Lists {
		at, err := newListAt(l)
		if err != nil {
			fmt.Fprintf(term.Escape(stderr), "spamgate: left out: %v\n", err)
			continue
		}
		lists = append(lists, at)
	}
	return lists
}

// scanning is a walk over the files of some lists.
type scanning struct {
	ctx    context.Context
	bar    *term.FileProgress
	stderr io.Writer
	failed bool // a file could not be read
}

// newScanning prepares a walk over the lists' files.
func newScanning(ctx context.Context, lists []*listAt, stderr io.Writer) *scanning {
	var files []string
	for _, l := range lists {
		files = append(files, l.files...)
	}
	return &scanning{ctx: ctx, bar: term.NewFileProgress(stderr, files...), stderr: stderr}
}

// file reads one file.
func (s *scanning) file(files blocklist.Opener, path string, o listfile.Options, entry func(listfile.Entry) error, problem func(listfile.Problem)) (listfile.Result, error) {
	in, err := openListFile(s.ctx, files, path, s.bar)
	if err != nil {
		return listfile.Result{}, err
	}
	defer in.close()
	result, err := listfile.Read(in, o, entry, problem)
	if err != nil {
		return result, fmt.Errorf("%s: %w", term.ShortPath(path), err)
	}
	return result, nil
}

// openListFile opens a file of a list. What is read of it ends with ctx, and shows
// on bar.
func openListFile(ctx context.Context, files blocklist.Opener, path string, bar *term.FileProgress) (*foreignFile, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, sayWho(err, whoServes)
	}
	return &foreignFile{path, bar.Reader(stoppableReader{ctx, f}, path), func() { f.Close() }}, nil
}

// lists reads all files of the lists. One that can't be read is told about, and
// left out: what is asked for may not concern it.
func (s *scanning) lists(lists []*listAt, each func(found) error) error {
	defer s.bar.Finish()
	for _, l := range lists {
		for _, path := range l.files {
			var failed error
			_, err := s.file(setup.Opener(l.List), path, l.options, func(e listfile.Entry) error {
				failed = each(found{l, path, e})
				return failed
			}, nil)
			if failed != nil || s.ctx.Err() != nil {
				return err
			}
			if err != nil {
				s.failed = true
				s.bar.Finish()
				fmt.Fprintf(term.Escape(s.stderr), "spamgate: left out: list %s: %v\n", l.Name, err)
			}
		}
	}
	return nil
}

// relations are the entries of all lists that have to do with some entries.
type relations struct {
	keys    map[string]bool
	entries map[string][]found
	names   map[string][]found // the first plain entries for senders at a domain or below it
	more    map[string]int     // how many there are beyond those
}

func newRelations() *relations {
	return &relations{map[string]bool{}, map[string][]found{}, map[string][]found{}, map[string]int{}}
}

// maxWithin is how many entries for senders at a domain are remembered.
const maxWithin = 20

// domainOf is the domain at or below which an entry matches whoever it is, ""
// where it is not about a domain.
func domainOf(e listfile.Entry) string {
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

// ask notes what to look for.
func (r *relations) ask(e listfile.Entry) {
	r.keys[e.Key] = true
	for _, key := range listedit.Covering(e.Key, e.Kind) {
		r.keys[key] = true
	}
	if name := domainOf(e); name != "" {
		r.names[name] = nil
	}
}

// read looks for it.
func (r *relations) read(ctx context.Context, lists []*listAt, stderr io.Writer) error {
	if len(r.keys) == 0 {
		return nil
	}
	s := newScanning(ctx, lists, stderr)
	return s.lists(lists, func(f found) error {
		if r.keys[f.entry.Key] && !f.over() {
			r.entries[f.entry.Key] = append(r.entries[f.entry.Key], f)
		}
		for name := range r.names {
			r.noteWithin(name, f)
		}
		return nil
	})
}

// relationsUnknown tells that a change was made, and that what else there is to
// say about it is not known.
func relationsUnknown(stderr io.Writer, err error) {
	fmt.Fprintf(stderr, "spamgate: it is changed; which other entries match the same senders is not known: %v\n", err)
}

// noteWithin notes an entry if it is for senders at the domain or below it.
func (r *relations) noteWithin(name string, f found) {
	before, ok := strings.CutSuffix(f.entry.Key, name)
	if !ok || before != "" && !strings.HasSuffix(before, "@") && !strings.HasSuffix(before, ".") || f.entry.Exception || f.over() {
		return
	}
	if len(r.names[name]) == maxWithin {
		r.more[name]++
		return
	}
	r.names[name] = append(r.names[name], f)
}

// within are the entries, but for e itself, that match some of the senders that e
// is about, and how many further ones there are.
func (r *relations) within(e listfile.Entry) (some []found, more int) {
	name := domainOf(e)
	for _, f := range r.names[name] {
		below := strings.TrimSuffix(f.entry.Key, name)
		switch {
		case f.entry.Key == e.Key:
		case e.Kind == sender.KindAtDomain && !strings.HasSuffix(below, "@"): // for other domains, or covering it
		case e.Kind == sender.KindSubdomains && (below == "" || strings.HasSuffix(below, "@")): // likewise
		default:
			some = append(some, f)
		}
	}
	return some, r.more[name]
}

// same are the entries of the same key that are no exceptions.
func (r *relations) same(e listfile.Entry) []found { return plainOnes(r.entries[e.Key]) }

// covering are the entries that match whatever e does.
func (r *relations) covering(e listfile.Entry) []found {
	var all []found
	for _, key := range listedit.Covering(e.Key, e.Kind) {
		all = append(all, plainOnes(r.entries[key])...)
	}
	return all
}

func plainOnes(entries []found) []found {
	var plain []found
	for _, f := range entries {
		if !f.entry.Exception {
			plain = append(plain, f)
		}
	}
	return plain
}
