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
// it need not be read.
func FindWanted(old io.ReadSeeker, o listfile.Options, wanted *Wanted, found func(listfile.Entry) error) error {
	if f, ok := old.(Finder); ok && len(wanted.Below) == 0 {
		if entries, ok := f.FindKeys(wanted.Keys); ok {
			for _, e := range entries {
				if err := found(e); err != nil {
					return err
				}
			}
			return nil
		}
	}
	if _, err := old.Seek(0, io.SeekStart); err != nil {
		return err
	}
	in := bufio.NewReaderSize(old, 64<<10)
	if packer, _ := listfile.Packer(in); packer != "" { // reading returns an error again
		return ErrPacked
	}
	o.Format, o.Now = listfile.Plain, 1
	match := wanted.match()
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
