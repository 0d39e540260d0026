package listedit

import (
	"bufio"
	"bytes"
	"io"
)

const byteOrderMark = "\ufeff"

// Splice says which lines of a text are to be changed. Lines count from 1; texts
// have no line end.
type Splice struct {
	Replace map[int]string
	Remove  map[int]bool
	Append  []string

	// AppendAll, if not nil, gives further lines to append, which need not be in
	// memory. An error of it is one of Copy.
	AppendAll func(yield func(line string) error) error

	// Empty is the line to write where nothing would be left of a text.
	Empty string
}

// Copy copies r to w with the changes. Everything else stays as it is, byte for
// byte. A changed line keeps its line end and byte order mark; what is appended
// ends its lines as the first line does, and the last one if the last line did;
// its first line is the one after lines.
func (s Splice) Copy(w io.Writer, r io.Reader) (lines int, err error) {
	c := splicing{Splice: s, in: bufio.NewReaderSize(r, 64<<10), out: w, end: "\n"}
	for n := 1; ; n++ {
		more, err := c.line(n)
		if err != nil {
			return 0, err
		}
		if !more {
			return c.lines, c.finish()
		}
	}
}

// splicing is one call of Copy.
type splicing struct {
	Splice
	in  *bufio.Reader
	out io.Writer

	read, wrote bool   // anything at all
	end         string // of the first line
	open        bool   // the last line has no end
	lines       int    // that stay
}

func (c *splicing) write(s string) error {
	if s == "" {
		return nil
	}
	c.wrote = true
	_, err := io.WriteString(c.out, s)
	return err
}

// line copies the n-th line, or does with it what is to be done. At the end of
// the text more is false.
func (c *splicing) line(n int) (more bool, err error) {
	replace, changed := c.Replace[n]
	remove := c.Remove[n]
	mark, tail := "", []byte(nil) // of the line: its mark, its last two bytes
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
		_, err = io.WriteString(c.out, mark) // it is the text's rather than the line's
	}
	if !remove {
		c.open = end == ""
		c.lines++
	}
	return end != "", err
}

// lineEnd returns the end of a line that ends in these bytes.
func lineEnd(tail []byte) string {
	switch {
	case bytes.HasSuffix(tail, []byte("\r\n")):
		return "\r\n"
	case bytes.HasSuffix(tail, []byte("\n")):
		return "\n"
	}
	return ""
}

// finish appends.
func (c *splicing) finish() error {
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
	if n > 0 && !c.open {
		return c.write(c.end)
	}
	return nil
}
