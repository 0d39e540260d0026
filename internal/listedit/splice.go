package listedit

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"math"
	"slices"
)

const byteOrderMark = "\ufeff"

// Splice is a set of changes to the lines of a text. Lines count from 1; their texts
// have no line end.
type Splice struct {
	Replace map[int]string
	Remove  map[int]bool
	Append  []string

	// AppendAll, if not nil, yields further lines to append. Copy returns its error.
	AppendAll func(yield func(line string) error) error

	// Empty is the line to write if nothing would be left of a text.
	Empty string
}

// Copy copies r to w with the changes, and everything else byte for byte. A changed
// line keeps its line end and byte order mark. Appended lines have the line end of the
// first line, and so has the last line if it had none: a program that appends a line
// later would else make it a part of that one. Lines is the number of lines before the
// appended ones.
func (s Splice) Copy(w io.Writer, r io.Reader) (lines int, err error) {
	c := splicer{Splice: s, in: bufio.NewReaderSize(r, copyBuffer), out: w, end: "\n"}
	changed := slices.Sorted(maps.Keys(s.Replace))
	changed = slices.AppendSeq(changed, maps.Keys(s.Remove))
	slices.Sort(changed)
	for n := 1; ; n++ {
		more, err := c.line(n)
		if err != nil {
			return 0, err
		}
		if !more {
			return c.lines, c.finish()
		}
		for len(changed) > 0 && changed[0] <= n {
			changed = changed[1:]
		}
		same := math.MaxInt
		if len(changed) > 0 {
			same = changed[0] - n - 1
		}
		copied, err := c.copyLines(same)
		if err != nil {
			return 0, err
		}
		n += copied
	}
}

// copyBuffer is how much is copied at a time.
const copyBuffer = 256 << 10

// splicer holds the state of one call of Copy.
type splicer struct {
	Splice
	in  *bufio.Reader
	out io.Writer

	read, wrote bool   // whether anything was read or written
	end         string // line end of the first line
	open        bool   // the last line has no line end
	lines       int    // number of lines that stay
}

func (c *splicer) write(s string) error {
	if s == "" {
		return nil
	}
	c.wrote = true
	_, err := io.WriteString(c.out, s)
	return err
}

// line copies or changes line n. At the end of the text more is false.
func (c *splicer) line(n int) (more bool, err error) {
	replace, changed := c.Replace[n]
	remove := c.Remove[n]
	mark, tail := "", []byte(nil) // the line's byte order mark and last two bytes
	for first := true; ; first = false {
		piece, err := c.in.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull && err != io.EOF {
			return false, err
		}
		if first && len(piece) == 0 {
			return false, nil
		}
		c.read = true
		if first && bytes.HasPrefix(piece, []byte(byteOrderMark)) {
			mark = byteOrderMark
		}
		tail = append(tail, piece[max(0, len(piece)-2):]...)
		tail = tail[max(0, len(tail)-2):]
		if !changed && !remove {
			c.wrote = true
			if _, err := c.out.Write(piece); err != nil {
				return false, err
			}
		}
		if err != bufio.ErrBufferFull {
			break
		}
	}
	end := lineEnd(tail)
	if n == 1 && end != "" {
		c.end = end
	}
	switch {
	case changed:
		err = c.write(mark + replace + end)
	case remove && n == 1 && mark != "":
		_, err = io.WriteString(c.out, mark) // it belongs to the text
	}
	if !remove {
		c.open = end == ""
		c.lines++
	}
	return end != "", err
}

// copyLines copies at most n lines, and returns how many there were.
func (c *splicer) copyLines(n int) (copied int, err error) {
	for copied < n {
		if _, err := c.in.Peek(1); err == io.EOF {
			break
		} else if err != nil {
			return copied, err
		}
		piece, _ := c.in.Peek(c.in.Buffered())
		if count := bytes.Count(piece, []byte("\n")); copied+count < n {
			copied += count
		} else {
			piece = piece[:afterLines(piece, n-copied)]
			copied = n
		}
		if _, err := c.out.Write(piece); err != nil {
			return copied, err
		}
		c.wrote, c.open = true, piece[len(piece)-1] != '\n'
		_, _ = c.in.Discard(len(piece)) // they are buffered
	}
	if c.open {
		copied++
	}
	c.lines += copied
	return copied, nil
}

// afterLines returns where the text after n lines begins. There must be as many.
func afterLines(text []byte, n int) (pos int) {
	for range n {
		pos += bytes.IndexByte(text[pos:], '\n') + 1
	}
	return pos
}

// lineEnd returns the line end in the last bytes of a line.
func lineEnd(tail []byte) string {
	switch {
	case bytes.HasSuffix(tail, []byte("\r\n")):
		return "\r\n"
	case bytes.HasSuffix(tail, []byte("\n")):
		return "\n"
	}
	return ""
}

// finish appends lines.
func (c *splicer) finish() error {
	n := 0
	add := func(line string) error {
		before := ""
		if n > 0 || c.open {
			before = c.end
		}
		n++
		return c.write(before + line)
	}
	for _, line := range c.Append {
		if err := add(line); err != nil {
			return err
		}
	}
	if c.AppendAll != nil {
		if err := c.AppendAll(add); err != nil {
			return err
		}
	}
	if c.read && !c.wrote && c.Empty != "" {
		if err := add(c.Empty); err != nil {
			return err
		}
	}
	if n > 0 || c.open {
		return c.write(c.end)
	}
	return nil
}
