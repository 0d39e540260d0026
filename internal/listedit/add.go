package listedit

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"spamgate/blocklist/listfile"
)

// What Add did with an entry.
const (
	Added   = "added"
	Updated = "updated" // the comment of an existing line
	Present = "already listed"
	Refused = "refused" // an exception in the list would cancel it
	Twice   = "named twice"
)

// Addition says what Add did with one entry.
type Addition struct {
	New   listfile.Entry
	What  string
	Line  int             // its line now
	Was   *listfile.Entry // the entry that was there, if any
	Extra []int           // its repeated lines; Updated removes them

	// Before and After are the texts of the entry's lines, unless they stay: of those that
	// are replaced and removed, and of the one that is written.
	Before []string
	After  string

	// Covered are entries of the same file that match all that this one matches.
	// Opposite is the entry of the same key that an exception cancels.
	Covered  []listfile.Entry
	Opposite *listfile.Entry
}

// Add adds entries to a plain list, each once. An entry that is already there keeps
// its line, and gets the new comment if that differs. The error is [ErrUnchanged] if
// nothing has to be changed, and also if an entry is Refused.
func Add(old io.ReadSeeker, w io.Writer, o listfile.Options, entries []listfile.Line) ([]Addition, error) {
	additions := make([]Addition, len(entries))
	index := newKeyIndex()
	for i, n := range entries {
		e, err := n.Parse(o)
		if err != nil {
			return nil, err
		}
		additions[i] = Addition{New: e, What: Added}
		if slices.ContainsFunc(index.own[Key(e)], func(j int) bool { return additions[j].New.Exception == e.Exception }) {
			additions[i].What = Twice
			continue
		}
		index.add(i, e)
	}
	splice := Splice{Replace: map[int]string{}, Remove: map[int]bool{}}
	err := index.scan(old, o, func(i int, e listfile.Entry) {
		additions[i].meet(e)
	}, func(i int, e listfile.Entry) {
		additions[i].Covered = append(additions[i].Covered, e)
	})
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(additions, func(a Addition) bool { return a.What == Refused }) {
		return additions, ErrUnchanged
	}
	var update []int // lines that get another comment, or go
	for _, a := range additions {
		if a.What == Updated {
			update = append(append(update, a.Line), a.Extra...)
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
	removed := slices.Collect(maps.Keys(splice.Remove))
	for i := range additions {
		if a := &additions[i]; a.What == Added {
			a.Line += lines + 1
		} else {
			a.Line = LineNow(a.Line, removed)
		}
	}
	return additions, err
}

// LineNow returns the number of a line after others were removed.
func LineNow(line int, removed []int) int {
	current := line
	for _, n := range removed {
		if n < line {
			current--
		}
	}
	return current
}

// meet compares the addition with an entry of the same key.
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
			a.What = Updated // this line would expire later
		}
	}
}

// splice adds the addition's changes to s.
func (a *Addition) splice(s *Splice, n listfile.Line, texts map[int]string) error {
	switch a.What {
	case Added:
		a.Line = len(s.Append) // counted from the first appended line
		a.After = n.String()
		s.Append = append(s.Append, a.After)
	case Updated:
		if n.Note == "" {
			n.Note = a.Was.Note
		}
		text, _ := listfile.CutComment(texts[a.Line])
		n.Text = strings.TrimRight(text, " \t")
		if err := n.CheckLength(); err != nil {
			return fmt.Errorf("line %d: %w", a.Line, err)
		}
		a.Before, a.After = []string{texts[a.Line]}, n.String()
		s.Replace[a.Line] = a.After
		for _, line := range a.Extra {
			s.Remove[line] = true // it could expire later
			a.Before = append(a.Before, texts[line])
		}
	}
	return nil
}

// keyIndex finds, in one pass through a list, the entries that concern some entries.
// Those are known by their numbers.
type keyIndex struct{ own, covering map[string][]int }

func newKeyIndex() *keyIndex { return &keyIndex{map[string][]int{}, map[string][]int{}} }

// add adds entry number i.
func (x *keyIndex) add(i int, e listfile.Entry) {
	x.own[Key(e)] = append(x.own[Key(e)], i)
	for _, key := range CoveringEntry(e) {
		x.covering[key] = append(x.covering[key], i)
	}
}

// scan looks into a list. It calls own for each of its entries that has the key of entry
// number i, and covering for each that is not an exception and matches all that entry
// number i matches.
func (x *keyIndex) scan(old io.ReadSeeker, o listfile.Options, own, covering func(i int, e listfile.Entry)) error {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(x.own)), maps.Keys(x.covering))
	slices.Sort(keys)
	return FindWanted(old, o, &Wanted{Keys: slices.Compact(keys)}, func(e listfile.Entry) error {
		key := Key(e)
		for _, i := range x.own[key] {
			own(i, e)
		}
		if e.Exception {
			return nil
		}
		for _, i := range x.covering[key] {
			covering(i, e)
		}
		return nil
	})
}

// linesOf returns the texts of some lines, without byte order mark and line end.
func linesOf(old io.ReadSeeker, lines []int) (map[int]string, error) {
	texts := map[int]string{}
	if len(lines) == 0 {
		return texts, nil
	}
	if _, err := old.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	c := splicer{in: bufio.NewReaderSize(old, copyBuffer), out: io.Discard}
	pos := 1
	for _, n := range slices.Sorted(slices.Values(lines)) {
		skipped, err := c.copyLines(n - pos)
		if err != nil {
			return nil, fmt.Errorf("reading line %d: %w", pos+skipped, err)
		}
		line, err := c.in.ReadSlice('\n') // an entry's line fits the buffer
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("reading line %d: %w", n, err)
		}
		pos = n + 1
		texts[n] = strings.TrimPrefix(strings.TrimRight(string(line), "\r\n"), byteOrderMark)
	}
	return texts, nil
}
