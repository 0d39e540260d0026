package listcompare

import (
	"cmp"
	"errors"
	"iter"
	"slices"

	"spamgate/blocklist/segment"
	"spamgate/internal/listfiles"
)

// Difference is an entry that differs between two states. Old is nil if it came, New is nil if
// it went.
type Difference struct {
	What string               `json:"what"` // "came", "went", "changed"
	Old  *listfiles.EntryInfo `json:"old,omitempty"`
	New  *listfiles.EntryInfo `json:"new,omitempty"`
}

// Diff is the result of comparing two states of a list.
type Diff struct {
	Old         string       `json:"old"`
	New         string       `json:"new"`
	Came        int          `json:"came"`
	Went        int          `json:"went"`
	Changed     int          `json:"changed"`
	Same        int          `json:"same"`
	Protected   int          `json:"protected,omitempty"`  // entries of New that are left out, since they cover a protected name
	Disallowed  int          `json:"disallowed,omitempty"` // likewise, since a list from a URL may not have them
	Differences []Difference `json:"differences"`

	// Most bounds the Differences of each kind: those of more are some. 0: there may be a
	// million in all.
	Most int `json:"-"`
}

// Compare compares two segments, in their common order.
func (d *Diff) Compare(before, after *segment.Segment, key *segment.Key) error {
	var failed [2]error
	nextOld, stopOld := iter.Pull(listfiles.Records(before, key, &failed[0]))
	defer stopOld()
	nextNew, stopNew := iter.Pull(listfiles.Records(after, key, &failed[1]))
	defer stopNew()
	old, hasOld := nextOld()
	record, hasNew := nextNew()
	for hasOld || hasNew {
		order := 0
		if hasOld && hasNew {
			order = old.Compare(record)
		}
		switch {
		case !hasNew || hasOld && order < 0:
			d.Went++
			d.note("went", &old, nil)
			old, hasOld = nextOld()
		case !hasOld || order > 0:
			d.Came++
			d.note("came", nil, &record)
			record, hasNew = nextNew()
		default:
			if old.Exception != record.Exception || old.Defer != record.Defer || old.Until != record.Until || old.Reason != record.Reason || old.Note != record.Note {
				d.Changed++
				d.note("changed", &old, &record)
			} else {
				d.Same++
			}
			old, hasOld = nextOld()
			record, hasNew = nextNew()
		}
	}
	slices.SortStableFunc(d.Differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.order(), b.order()), cmp.Compare(a.line(), b.line()))
	})
	return errors.Join(failed[0], failed[1])
}

// maxDifferences bounds the stored differences: about 300 MiB.
const maxDifferences = 1_000_000

func (d *Diff) note(what string, old, record *listfiles.Record) {
	if len(d.Differences) == maxDifferences || d.Most > 0 && d.count(what) > d.Most {
		return
	}
	difference := Difference{What: what}
	if old != nil {
		entryInfo := listfiles.NewEntryInfo("", d.Old, old.Entry())
		difference.Old = &entryInfo
	}
	if record != nil {
		entryInfo := listfiles.NewEntryInfo("", d.New, record.Entry())
		difference.New = &entryInfo
	}
	d.Differences = append(d.Differences, difference)
}

// count returns the number of differences of a kind so far.
func (d *Diff) count(what string) int {
	switch what {
	case "went":
		return d.Went
	case "came":
		return d.Came
	}
	return d.Changed
}

// order sorts entries that went before those that changed, and those before entries that
// came.
func (d Difference) order() int {
	switch {
	case d.New == nil:
		return 0
	case d.Old == nil:
		return 2
	}
	return 1
}

func (d Difference) line() int {
	if d.New != nil {
		return d.New.Line
	}
	return d.Old.Line
}
