package listedit

import (
	"io"
	"maps"
	"slices"

	"spamgate/blocklist/listfile"
)

// Removal says what Remove did with one entry.
type Removal struct {
	Entry   listfile.Entry   // the entry of the call
	Removed []listfile.Entry // the entries of the list, with lines
	Before  []string         // the texts of their lines; Find does not set them

	// Covered are entries of the same file that still match all that this one
	// matched.
	Covered []listfile.Entry
}

// NoEntries is the content of a list whose last entry and comment were removed: a file
// of 0 bytes would pass for a lost one.
const NoEntries = "# no entries"

// Remove removes entries from a plain list, in whatever spelling. The error is
// [ErrUnchanged] if the list has none of them.
func Remove(old io.ReadSeeker, w io.Writer, o listfile.Options, entries []listfile.Entry) ([]Removal, error) {
	removals, err := Find(old, o, entries)
	if err != nil {
		return nil, err
	}
	splice := Splice{Remove: map[int]bool{}, Empty: NoEntries}
	for _, r := range removals {
		for _, e := range r.Removed {
			splice.Remove[e.Line] = true
		}
	}
	if len(splice.Remove) == 0 {
		return removals, ErrUnchanged
	}
	texts, err := linesOf(old, slices.Collect(maps.Keys(splice.Remove)))
	if err != nil {
		return nil, err
	}
	for i := range removals {
		for _, e := range removals[i].Removed {
			removals[i].Before = append(removals[i].Before, texts[e.Line])
		}
	}
	if _, err := old.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	_, err = splice.Copy(w, old)
	return removals, err
}

// Find returns what [Remove] would remove.
func Find(old io.ReadSeeker, o listfile.Options, entries []listfile.Entry) ([]Removal, error) {
	removals := make([]Removal, len(entries))
	index := newKeyIndex()
	for i, e := range entries {
		removals[i].Entry = e
		index.add(i, e)
	}
	err := index.scan(old, o, func(i int, e listfile.Entry) {
		if e.Exception == removals[i].Entry.Exception {
			removals[i].Removed = append(removals[i].Removed, e)
		}
	}, func(i int, e listfile.Entry) {
		removals[i].Covered = append(removals[i].Covered, e)
	})
	return removals, err
}
