package listedit

import (
	"io"

	"spamgate/blocklist/listfile"
)

// Removal is what became of one entry that was to be removed.
type Removal struct {
	Entry   listfile.Entry   // as it was asked for
	Removed []listfile.Entry // what was there of it, with lines

	// Covered are entries of the same file that go on matching all that this
	// one did.
	Covered []listfile.Entry
}

// NoEntries is what stands in a list whose last entry and comment were removed:
// a file of 0 bytes would be taken for one that was lost.
const NoEntries = "# no entries"

// Remove removes entries from a plain list, however they are spelled there. The
// error is [ErrUnchanged] where none of them is there.
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
	if _, err := old.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	_, err = splice.Copy(w, old)
	return removals, err
}

// Find says what [Remove] would remove.
func Find(old io.ReadSeeker, o listfile.Options, entries []listfile.Entry) ([]Removal, error) {
	removals := make([]Removal, len(entries))
	wanted := map[string][]int{}
	covering := map[string][]int{}
	keys := map[string]bool{}
	for i, e := range entries {
		removals[i].Entry = e
		wanted[e.Key] = append(wanted[e.Key], i)
		keys[e.Key] = true
		for _, key := range Covering(e.Key, e.Kind) {
			covering[key] = append(covering[key], i)
			keys[key] = true
		}
	}
	err := scan(old, o, keys, func(e listfile.Entry) {
		for _, i := range wanted[e.Key] {
			if e.Exception == removals[i].Entry.Exception {
				removals[i].Removed = append(removals[i].Removed, e)
			}
		}
		if !e.Exception {
			for _, i := range covering[e.Key] {
				removals[i].Covered = append(removals[i].Covered, e)
			}
		}
	})
	return removals, err
}
