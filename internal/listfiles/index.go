package listfiles

import (
	"bytes"
	"cmp"
	"context"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/store"
	"spamgate/internal/config"
	"spamgate/internal/joined"
	"spamgate/internal/listedit"
	"spamgate/internal/setup"
)

// Indexes are the indexes that a gate has stored of the lists. Looking for a few entries
// there takes microseconds, and reading a list of ten million lines seconds.
type Indexes struct {
	ctx     context.Context
	stored  *store.Indexes // nil: none can be used
	guarded Protection
	opened  map[string]*Index // by list; nil: it has to be read
}

// OpenIndexes returns the indexes of the configured lists. If the state directory cannot
// be used there are none, and the lists are read.
func OpenIndexes(ctx context.Context, c *config.Config) *Indexes {
	x := &Indexes{ctx: ctx, opened: map[string]*Index{}}
	lists, err := setup.BlocklistConfig(c, nil)
	if err == nil {
		x.stored, err = store.OpenIndexes(lists)
	}
	if err == nil {
		x.guarded = NewProtection(c)
	}
	return x
}

// Of returns the index of a list, or nil if the list has to be read. After a first call
// it returns the same index whatever becomes of the files; see Forget.
func (x *Indexes) Of(l *List) *Index {
	if x == nil || x.stored == nil {
		return nil
	}
	index, known := x.opened[l.Name]
	if !known {
		if s := x.stored.Current(x.ctx, l.Name); s != nil {
			index = &Index{l, s, x.guarded}
		}
		x.opened[l.Name] = index
	}
	return index
}

// Forget makes Of return nil for a list: its files have changed, or its index is damaged.
func (x *Indexes) Forget(l *List) {
	if x != nil {
		x.opened[l.Name] = nil
	}
}

// Index is the index of a list as its files are now.
type Index struct {
	list    *List
	stored  *store.StoredIndex
	guarded Protection
}

// Describes reports whether the index is of the content that an open file of the
// list has.
func (x *Index) Describes(path string, info fs.FileInfo) bool {
	i := slices.Index(x.list.Paths, path)
	return i >= 0 && x.stored.Describes(i, info)
}

// Find returns the entries that have one of the keys, as [listedit.Key] returns them, in the order of the list's files.
// All reports whether these are all lines with such an entry. If not, the list may have
// more lines: expired ones, repeated ones, and some that the gate leaves out.
func (x *Index) Find(keys []string) (found []Located, all bool, err error) {
	all = x.stored.Expired == 0
	for _, key := range keys {
		_, name, _ := strings.Cut(key, "\t") // the sender's side
		name = cmp.Or(name, key)
		if len(key) > segment.MaxKey || x.stored.Omitted > 0 && x.guarded.LeftOut(x.list, listfile.Entry{Key: name, Kind: listfile.KindOf(name)}).Omitted() {
			all = false
		}
		r, ok, err := x.stored.Lookup(key)
		if err != nil {
			return nil, false, err
		}
		if ok {
			found = append(found, x.located(r))
		}
	}
	slices.SortFunc(found, x.compare)
	return found, all && (len(found) == 0 || x.stored.Repeated == 0), nil
}

// FindIn returns those entries of one file that [Index.Find] returns.
func (x *Index) FindIn(path string, keys []string) (entries []listfile.Entry, all bool, err error) {
	found, all, err := x.Find(keys)
	for _, f := range found {
		if f.file == path {
			entries = append(entries, f.Entry)
		}
	}
	return entries, all, err
}

func (x *Index) located(r segment.Record) Located {
	path := ""
	if r.File < len(x.list.Paths) {
		path = x.list.Paths[r.File]
	}
	return Located{x.list, path, Record{Record: r}.Entry()}
}

// compare orders entries as the files of the list have them.
func (x *Index) compare(a, b Located) int {
	return cmp.Or(cmp.Compare(slices.Index(x.list.Paths, a.file), slices.Index(x.list.Paths, b.file)), cmp.Compare(a.Entry.Line, b.Entry.Line))
}

// below returns the first entries, at most some, for senders at a domain or below it, and
// the number of others.
func (x *Index) below(name string, some int) (found []Located, more int, err error) {
	var mu sync.Mutex
	var lookupErr error
	err = x.scan(name, func(key []byte) bool {
		if !listedit.Below(key, name) || bytes.IndexByte(key, '\t') >= 0 {
			return true
		}
		r, ok, err := x.stored.Lookup(string(key))
		f := x.located(r)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			lookupErr = err
		case ok && !f.Entry.Exception && !f.Over():
			pos, _ := slices.BinarySearchFunc(found, f, x.compare)
			found = slices.Insert(found, pos, f)
			if len(found) > some {
				found = found[:some]
				more++
			}
		}
		return err == nil
	})
	return found, more, cmp.Or(err, lookupErr)
}

// parallelScan is the number of entries from which on several goroutines scan an index.
const parallelScan = 1 << 17

// scan calls note with each key that contains a text, from several goroutines, until it
// returns false.
func (x *Index) scan(text string, note func(key []byte) bool) error {
	parts := uint64(1)
	if x.stored.Len() >= parallelScan {
		parts = uint64(runtime.GOMAXPROCS(0))
	}
	errs := make([]error, parts)
	var wg joined.Group
	width := ^uint64(0)/parts + 1 // 0 for one part: all of them
	for i := range parts {
		wg.Go(func() {
			last := width*(i+1) - 1
			if i == parts-1 {
				last = ^uint64(0)
			}
			errs[i] = x.stored.ScanFor(width*i, last, text, note)
		})
	}
	wg.Wait()
	return cmp.Or(errs...)
}

// Edit is a change that was made to a file of a list after its index. Lines are those of
// the file before the change.
type Edit struct {
	Path              string
	Removed, Replaced []int            // lines
	Added             []listfile.Entry // with their lines now; they replace the Replaced ones
}

// apply returns an entry with its present line. It reports whether its file still has it.
func apply(edits []Edit, f Located) (Located, bool) {
	i := slices.IndexFunc(edits, func(d Edit) bool { return d.Path == f.file })
	if i < 0 {
		return f, true
	}
	d := &edits[i]
	if slices.Contains(d.Removed, f.Entry.Line) || slices.Contains(d.Replaced, f.Entry.Line) {
		return f, false
	}
	f.Entry.Line = listedit.LineNow(f.Entry.Line, d.Removed)
	return f, true
}
