package listedit

import (
	"bufio"
	"io"
	"slices"

	"spamgate/blocklist/listfile"
)

// Finder is a plain list that knows its entries without being read.
type Finder interface {
	// FindKeys returns the entries that have one of the keys, in the order of their
	// lines, expired ones included. If it cannot tell, ok is false.
	FindKeys(keys []string) (entries []listfile.Entry, ok bool)
}

// Wanted says which entries of a list are wanted.
type Wanted struct {
	Keys  []string // entries with one of these keys, see [Key]
	Below []string // entries for senders at one of these domains, or below it
}

// match returns a function that reports whether an entry is wanted.
func (w *Wanted) match() func(e listfile.Entry) bool {
	keys := make(map[string]bool, len(w.Keys))
	for _, key := range w.Keys {
		keys[key] = true
	}
	return func(e listfile.Entry) bool {
		return keys[Key(e)] || slices.ContainsFunc(w.Below, func(name string) bool { return Below(e.Key, name) })
	}
}

// Below reports whether a key is of senders at a domain or below it.
func Below[T string | []byte](key T, name string) bool {
	n := len(key) - len(name)
	return n >= 0 && string(key[n:]) == name && (n == 0 || key[n-1] == '@' || key[n-1] == '.')
}

// FindWanted calls found for each entry of a plain list that is wanted, in the order of
// the lines, until it returns an error. Expired entries count. If the list is a [Finder]
// it need not be read; otherwise few of its lines are parsed.
func FindWanted(old io.ReadSeeker, o listfile.Options, wanted *Wanted, found func(listfile.Entry) error) error {
	if f, ok := old.(Finder); ok && len(wanted.Below) == 0 {
		if entries, ok := f.FindKeys(wanted.Keys); ok {
			return each(entries, found)
		}
	}
	if _, err := old.Seek(0, io.SeekStart); err != nil {
		return err
	}
	in := bufio.NewReaderSize(old, 64<<10)
	if packed(in) {
		return ErrPacked
	}
	o.Format, o.Now = listfile.Plain, 1
	match := wanted.match()
	c := newCandidates(in, wanted)
	if c == nil {
		return eachEntry(in, o, match, found)
	}
	var entries []listfile.Entry
	if eachEntry(c, o, match, func(e listfile.Entry) error {
		e.Line = c.line(e.Line)
		entries = append(entries, e)
		return nil
	}) == nil {
		return each(entries, found)
	}
	// An error names a line, which has its number only among all lines.
	if _, err := old.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return eachEntry(old, o, match, found)
}

func each(entries []listfile.Entry, found func(listfile.Entry) error) error {
	for _, e := range entries {
		if err := found(e); err != nil {
			return err
		}
	}
	return nil
}

// eachEntry calls found with each entry of a list that is wanted.
func eachEntry(in io.Reader, o listfile.Options, match func(e listfile.Entry) bool, found func(listfile.Entry) error) error {
	for e, err := range listfile.NewReader(in, o).All() {
		if err == nil && match(e) {
			err = found(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
