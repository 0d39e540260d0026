package store

import (
	"context"
	"io/fs"
	"log/slog"
	"slices"

	"spamgate/blocklist/segment"
	"spamgate/internal/dirwatch"
)

// Indexes opens what a state directory has stored of lists, for programs that look for a
// few entries of long lists. It writes nothing.
type Indexes struct {
	config Config
	state  *state
}

// OpenIndexes returns the Indexes of a configuration.
func OpenIndexes(c Config) (*Indexes, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return &Indexes{c, openState(c.StateDir, true, slog.New(slog.DiscardHandler))}, nil
}

// StoredIndex is the index of a list whose files have not changed since it was made. The
// numbers of files in its records are those of the list's files, in their order.
type StoredIndex struct {
	*segment.Segment
	key    *segment.Key
	stamps []stamp

	// Expired, Omitted and Repeated are the numbers of the list's entries that are not
	// in the index: those that had expired when it was made, those of [Omissions], and
	// those whose key another entry has.
	Expired, Omitted int
	Repeated         uint64
}

// Current returns the index of a list, or nil if there is none that is certain to be of
// the list's present files. Files that merely look different, or changed too soon before
// they were read, are compared with what was read then.
func (x *Indexes) Current(ctx context.Context, list string) *StoredIndex {
	i := slices.IndexFunc(x.config.Lists, func(l List) bool { return l.Name == list })
	if i < 0 {
		return nil
	}
	l := &x.config.Lists[i]
	v, same := x.state.load(l, x.config.readOptions(l))
	if v == nil || !same || v.stale {
		return nil
	}
	stamps := x.same(ctx, l, v)
	if stamps == nil {
		return nil
	}
	s := v.index.Segment()
	return &StoredIndex{s, x.state.keys.Segment(), stamps, v.Expired, v.Protected + v.Disallowed, s.Duplicates()}
}

// same returns stamps of the files of a list, or nil if they do not hold what the version was
// made of.
func (x *Indexes) same(ctx context.Context, l *List, v *version) []stamp {
	o := Opener{StateDir: x.config.StateDir}
	paths, err := dirwatch.Find(l.Paths, func(string, string) {})
	if err != nil || len(paths) != len(v.stamps) {
		return nil
	}
	current, err := o.statFiles(paths)
	if err != nil {
		return nil
	}
	// First what costs nothing.
	for i := range current {
		if current[i].Path != v.stamps[i].Path || current[i].Size != v.stamps[i].Size {
			return nil
		}
	}
	stamps := slices.Clone(v.stamps)
	for i := range current {
		if current[i].attributes == v.stamps[i].attributes && !v.stamps[i].racy() {
			continue
		}
		got, err := o.readStamped(ctx, paths[i], nil)
		if err != nil || got.Digest != v.stamps[i].Digest {
			return nil
		}
		stamps[i] = got
	}
	return stamps
}

// Lookup returns the entry of a key.
func (x *StoredIndex) Lookup(key string) (r segment.Record, ok bool, err error) {
	return x.Segment.Lookup(x.key.Hash([]byte(key)), []byte(key))
}

// Describes reports whether the index is certainly of the content that an open file has,
// by what its FileInfo shows. The file is number i of the list.
func (x *StoredIndex) Describes(i int, info fs.FileInfo) bool {
	return i < len(x.stamps) && !x.stamps[i].racy() && x.stamps[i].attributes == attributesOf(info)
}
