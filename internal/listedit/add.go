package listedit

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"spamgate/blocklist/listfile"
)

// What became of an entry that was to be added.
const (
	Added   = "added"
	Updated = "updated" // the comment of a line that was there
	Present = "already listed"
	Refused = "refused" // an exception for it is there, and would cancel it
	Twice   = "named twice"
)

// Addition is what became of one entry that was to be added.
type Addition struct {
	New   listfile.Entry
	What  string
	Line  int             // where it stands now
	Was   *listfile.Entry // the entry that was there, if one was
	Extra []int           // repeated lines of it, which were removed if it was Updated

	// Covered are entries of the same file that match all that this one does.
	// Opposite is, for an exception, the entry of the same key that it cancels.
	Covered  []listfile.Entry
	Opposite *listfile.Entry
}

// Add adds entries to a plain list, each once. One that is there already keeps
// its line, and gets the new comment if that is another. The error is
// [ErrUnchanged] where nothing is to be changed, and also where one is Refused.
func Add(old io.ReadSeeker, w io.Writer, o listfile.Options, entries []NewEntry) ([]Addition, error) {
	additions := make([]Addition, len(entries))
	wanted := map[string][]int{} // by key, which additions have it
	covering := map[string][]int{}
	for i, n := range entries {
		e, err := n.Parse(o)
		if err != nil {
			return nil, err
		}
		additions[i] = Addition{New: e, What: Added}
		if slices.ContainsFunc(wanted[e.Key], func(j int) bool { return additions[j].New.Exception == e.Exception }) {
			additions[i].What = Twice
			continue
		}
		wanted[e.Key] = append(wanted[e.Key], i)
		for _, key := range Covering(e.Key, e.Kind) {
			covering[key] = append(covering[key], i)
		}
	}
	splice := Splice{Replace: map[int]string{}, Remove: map[int]bool{}}
	keys := map[string]bool{}
	for key := range wanted {
		keys[key] = true
	}
	for key := range covering {
		keys[key] = true
	}
	err := scan(old, o, keys, func(e listfile.Entry) {
		for _, i := range wanted[e.Key] {
			additions[i].meet(e)
		}
		if !e.Exception {
			for _, i := range covering[e.Key] {
				additions[i].Covered = append(additions[i].Covered, e)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(additions, func(a Addition) bool { return a.What == Refused }) {
		return additions, ErrUnchanged
	}
	var update []int // lines to be given another comment
	for _, a := range additions {
		if a.What == Updated {
			update = append(update, a.Line)
		}
	}
	texts, err := linesOf(old, update)
	if err != nil {
		return nil, err
	}
	for i := range additions {
		if err := additions[i].splice(&splice, entries[i], texts); err != nil {
			return nil, err
		}
	}
	if len(splice.Replace)+len(splice.Append) == 0 {
		return additions, ErrUnchanged
	}
	if _, err := old.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	lines, err := splice.Copy(w, old)
	for i := range additions {
		if a := &additions[i]; a.What == Added {
			a.Line += lines + 1
		}
	}
	return additions, err
}

// meet notes that an entry of the same key is there.
func (a *Addition) meet(e listfile.Entry) {
	switch {
	case e.Exception && !a.New.Exception:
		a.What, a.Line, a.Was = Refused, e.Line, &e
	case e.Exception != a.New.Exception:
		if a.Opposite == nil {
			a.Opposite = &e
		}
	case a.What == Refused:
	case a.Was == nil:
		a.Line, a.Was, a.What = e.Line, &e, Present
		if e.Reason != a.New.Reason || e.Until != a.New.Until || a.New.Note != "" && e.Note != a.New.Note {
			a.What = Updated
		}
	default:
		a.Extra = append(a.Extra, e.Line)
		if a.New.Until != 0 && (e.Until == 0 || e.Until > a.New.Until) {
			a.What = Updated // for this line would outlive it
		}
	}
}

// splice says which lines the addition changes.
func (a *Addition) splice(s *Splice, n NewEntry, texts map[int]string) error {
	switch a.What {
	case Added:
		a.Line = len(s.Append) // for now, counted from the first that is appended
		s.Append = append(s.Append, n.Line())
	case Updated:
		if n.Note == "" {
			n.Note = a.Was.Note
		}
		text, _ := listfile.CutComment(texts[a.Line])
		n.Text = strings.TrimRight(text, " \t")
		if err := n.checkLength(); err != nil {
			return fmt.Errorf("line %d: %w", a.Line, err)
		}
		s.Replace[a.Line] = n.Line()
		for _, line := range a.Extra {
			s.Remove[line] = true // one without an end would outlive one that has one
		}
	}
	return nil
}

// scan calls found for each entry of a list that has one of the keys.
func scan(old io.ReadSeeker, o listfile.Options, keys map[string]bool, found func(listfile.Entry)) error {
	if _, err := old.Seek(0, io.SeekStart); err != nil {
		return err
	}
	in := bufio.NewReaderSize(old, 256<<10)
	if packed(in) {
		return ErrPacked
	}
	o.Format, o.Now = listfile.Plain, 1 // lines whose time is over are lines
	for e, err := range listfile.NewReader(in, o).All() {
		if err != nil {
			return err
		}
		if keys[e.Key] {
			found(e)
		}
	}
	return nil
}

// packed reports whether a file is packed, with gzip or zstd.
func packed(in *bufio.Reader) bool {
	start, _ := in.Peek(4) // an error comes again
	return bytes.HasPrefix(start, []byte("\x1f\x8b")) || bytes.Equal(start, []byte("\x28\xb5\x2f\xfd"))
}

// linesOf returns the texts of lines, without byte order mark and line end.
func linesOf(old io.ReadSeeker, lines []int) (map[int]string, error) {
	texts := map[int]string{}
	if len(lines) == 0 {
		return texts, nil
	}
	if _, err := old.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	wanted := map[int]bool{}
	for _, n := range lines {
		wanted[n] = true
	}
	in := bufio.NewReaderSize(old, 64<<10)
	last := slices.Max(lines)
	for n := 1; n <= last; n++ {
		line, err := in.ReadSlice('\n')
		for long := line; err == bufio.ErrBufferFull; {
			long, err = in.ReadSlice('\n')
			_ = long // an entry's line fits the buffer
		}
		if err != nil && (err != io.EOF || n < last) {
			return nil, fmt.Errorf("reading line %d: %w", n, err)
		}
		if wanted[n] {
			texts[n] = strings.TrimPrefix(strings.TrimRight(string(line), "\r\n"), byteOrderMark)
		}
	}
	return texts, nil
}
