package listfiles

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/sender"
)

// InOrder gives the entries of an index in the order of the lines that they come from. It
// keeps about 50 bytes an entry in memory.
type InOrder struct {
	List  string // its name, for errors
	Index *segment.Segment
	Key   *segment.Key
	Files []string

	// WithoutReasons and WithoutNotes leave these out of the entries.
	WithoutReasons, WithoutNotes bool

	// File is that of the entry that Each yields, and Err the first error of reading the
	// index.
	File string
	Err  error

	keys   []byte // of all entries, one after the other
	places []keyPlace
}

// keyPlace is where an entry comes from, and where its key is.
type keyPlace struct {
	file, line, size uint32
	index            uint64
}

// Sort reads the index. It is called first, once Index, Key and Files are set.
func (o *InOrder) Sort() error {
	o.places = make([]keyPlace, 0, o.Index.Len())
	err := o.Index.Records(func(r segment.Record) bool {
		key := r.Indexed()
		o.places = append(o.places, keyPlace{uint32(r.File), uint32(r.Line), uint32(len(key)), uint64(len(o.keys))})
		o.keys = append(o.keys, key...)
		return true
	})
	slices.SortFunc(o.places, func(a, b keyPlace) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), strings.Compare(o.text(a), o.text(b)))
	})
	return err
}

func (o *InOrder) text(p keyPlace) string { return string(o.keys[p.index:][:p.size]) }

// Entries returns the list for [listfile.Write].
func (o *InOrder) Entries() listfile.List {
	return listfile.List{Entries: o.Each, Lookup: o.Lookup, Kinds: sender.KindSet(o.Index.Kinds())}
}

// Each yields the entries. It ends early if the index is damaged, as Err says then.
func (o *InOrder) Each(yield func(listfile.Entry) bool) {
	for _, p := range o.places {
		entry, ok := o.Lookup(o.text(p))
		if !ok {
			return
		}
		o.File = o.Files[p.file]
		if !yield(entry) {
			return
		}
	}
}

// Lookup returns the entry of a key.
func (o *InOrder) Lookup(key string) (listfile.Entry, bool) {
	r, ok, err := o.Index.Lookup(o.Key.Hash([]byte(key)), []byte(key))
	if err != nil {
		o.Err = cmp.Or(o.Err, fmt.Errorf("reading the index of list %s: %w", o.List, err))
		return listfile.Entry{}, false
	}
	if o.WithoutReasons {
		r.Reason = ""
	}
	if o.WithoutNotes {
		r.Note = ""
	}
	return Record{Record: r}.Entry(), ok
}
