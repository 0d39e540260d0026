package hashlab

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"spamgate/blocklist/listfile"
)

// ReadCorpus reads a corpus. Errors and tables show its name, such as a file's
// path.
//
// Without asList a line is a key: raw bytes, ended by the line feed alone, so
// that a carriage return or a space belongs to the key. An empty line is the
// empty key, and a last line without a line feed counts. With asList the text
// is a list as package listfile reads it, and the keys are those of its
// entries; it skips and counts lines that are not entries.
//
// It drops and counts duplicate keys. Too few keys (see [MinKeys]), too many, and
// a line of 1 MiB or more are errors.
func ReadCorpus(name string, r io.Reader, asList bool) (*Corpus, error) {
	c, _, err := readCorpus(name, r, asList, func(int32) {})
	return c, err
}

// readCorpus is ReadCorpus. It calls line with the number of each line's key.
func readCorpus(name string, r io.Reader, asList bool, line func(key int32)) (*Corpus, *keySet, error) {
	c := &Corpus{Name: name, What: "lines of a file"}
	set := newKeySet()
	add := func(key []byte) error {
		if !set.add(key) {
			c.Duplicates++
		}
		if len(set.keys) > MaxKeys || set.bytes > maxCorpusBytes {
			return fmt.Errorf("too large: at most %d different keys of %d bytes together are possible", MaxKeys, maxCorpusBytes)
		}
		line(int32(set.table[set.find(key)] - 1))
		return nil
	}
	var err error
	if asList {
		c.What = "entries of a list"
		entries := listfile.NewReader(&lineGuard{in: r, line: 1}, listfile.Options{})
		for e, failed := range entries.All() {
			if err = failed; err == nil {
				err = add([]byte(e.Key))
			}
			if err != nil {
				break
			}
		}
		c.Invalid = entries.Result().Invalid
	} else {
		err = readLines(&lineGuard{in: r, line: 1}, add)
	}
	if long := (longLine{}); errors.As(err, &long) {
		err = long // without the position that the list's reader adds
	}
	if err != nil {
		return nil, nil, fmt.Errorf("corpus %s: %w", name, err)
	}
	c.Keys = set.keys
	if err := c.check(); err != nil {
		if c.Invalid > 0 {
			err = fmt.Errorf("%w (%d lines are not entries of a list)", err, c.Invalid)
		}
		return nil, nil, err
	}
	return c, set, nil
}

// readLines calls add with each line. The key is valid only during the call.
func readLines(r io.Reader, add func(key []byte) error) error {
	in := bufio.NewReaderSize(r, MaxKeyBytes+2) // room for a whole line and its end, so that ReadSlice never returns ErrBufferFull
	for {
		line, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err != nil && len(line) == 0 {
			return nil
		}
		if err := add(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			return err
		}
	}
}

// lineGuard passes a text on, and returns an error if a line is too long. It is
// also needed for lists, whose reader skips lines of any length.
type lineGuard struct {
	in     io.Reader
	line   int // number of the current line, from 1
	length int // its bytes so far
}

func (g *lineGuard) Read(p []byte) (int, error) {
	n, err := g.in.Read(p)
	for rest := p[:n]; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		if g.length += len(line); g.length > MaxKeyBytes {
			return 0, longLine{g.line}
		}
		if ended {
			g.length, g.line = 0, g.line+1
		}
		rest = after
	}
	return n, err
}

// longLine is the error of a line that is too long.
type longLine struct{ line int }

func (l longLine) Error() string {
	return fmt.Sprintf("line %d: longer than %d bytes, the limit of a key: give one key a line", l.line, MaxKeyBytes)
}
