package blocklist

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// Change is an entry that a list gets or loses. An entry that the list has under the same key
// is replaced.
type Change struct {
	List   string
	Entry  listfile.Entry
	Remove bool
}

// ErrUnchangeable is wrapped by the error for a Change that no Set can have.
var ErrUnchangeable = errors.New("cannot be changed")

// With returns the View of the lists with changes, as a Set would decide that was built from
// the changed lists. Its lookups are not counted, see Uncounted.
//
// It is for a question or a thousand, not for mail: each key is compared with each change.
func (v *View) With(changes ...Change) (*View, error) {
	if !v.set.confirm {
		return nil, fmt.Errorf("the lists %w: the filter alone decides", ErrUnchangeable)
	}
	all := slices.Clone(v.changes)
	for i := range changes {
		c, err := v.set.newEdit(&changes[i])
		if err != nil {
			return nil, err
		}
		all = slices.Insert(all, 0, c) // the last one of a key counts
	}
	return v.changed(all), nil
}

// edit is a Change as lookups meet it.
type edit struct {
	list   int
	text   string          // the key in the index
	marker string          // of the recipient; "" if there is none
	record *segment.Record // nil: removed
}

// newEdit returns the change of a list of the Set.
func (s *Set) newEdit(c *Change) (edit, error) {
	i := slices.IndexFunc(s.lists, func(l setList) bool { return l.Name == c.List })
	switch {
	case i < 0:
		return edit{}, fmt.Errorf("list %q %w: there is no such list", c.List, ErrUnchangeable)
	case s.lists[i].Asked != nil:
		return edit{}, fmt.Errorf("list %q %w: it is in DNS", c.List, ErrUnchangeable)
	case s.lists[i].PerRecipient != (c.Entry.For != ""):
		return edit{}, fmt.Errorf("list %q %w so: entries of a list by recipient are for one, and no others", c.List, ErrUnchangeable)
	}
	e := &c.Entry
	r := segment.Record{
		For: e.For, Key: e.Key, Kind: uint8(e.Kind), Exception: e.Exception, Defer: e.Defer, Until: e.Until,
		Reason: e.Reason, Note: e.Note, File: math.MaxInt, // in no file yet
	}
	removed := edit{list: i, text: r.Indexed()}
	if c.Remove {
		return removed, nil
	}
	removed.record = &r
	if e.For != "" {
		removed.marker = string(segment.AppendFor(nil, e.For, ""))
	}
	return removed, nil
}

// changed returns the View with these changes, uncounted.
func (v *View) changed(changes []edit) *View {
	view := *v
	view.uncounted, view.changes = true, changes
	for _, c := range changes {
		if c.record == nil {
			continue
		}
		kinds := &view.kinds
		if c.marker != "" {
			kinds = &view.forKinds
		}
		for stage := range kinds {
			if view.counts(c.list, verdict.Stage(stage)) {
				kinds[stage] = kinds[stage].With(sender.Kind(c.record.Kind))
			}
		}
	}
	return &view
}

// mayContain asks the filter for a key. It may contain what changes add.
func (v *View) mayContain(key []byte) bool {
	return v.set.filter.mayContain(key) || v.changes != nil && v.adds(key)
}

// adds reports whether changes add a key, that of an entry or of a marker.
func (v *View) adds(key []byte) bool {
	return slices.ContainsFunc(v.changes, func(c edit) bool {
		return c.record != nil && (c.text == string(key) || c.marker == string(key))
	})
}

// record returns the entry of a list under a key, with the changes.
func (v *View) record(list int, hash uint64, key []byte) (segment.Record, bool, error) {
	for i := range v.changes {
		if c := &v.changes[i]; c.list == list && c.text == string(key) {
			if c.record == nil {
				return segment.Record{}, false, nil
			}
			return *c.record, true, nil
		}
	}
	r, ok, err := v.set.lists[list].index.segment.Lookup(hash, key)
	if err != nil {
		err = v.set.failed(&v.set.lists[list], err)
	}
	return r, ok, err
}
