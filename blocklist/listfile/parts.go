package listfile

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
)

// partSize is the number of bytes that are read at a time, and handed to a worker.
// A worker's problems are held until those of the parts before it have been
// reported, so it bounds memory.
const partSize = 256 << 10

// part is some whole lines of a file.
type part struct {
	text  string
	first int   // number of the first line
	long  bool  // text is only the beginning of one line
	err   error // set instead of text where the file could not be read

	done chan partResult // takes one
}

// readLines reads the lines of a part. With clone each entry has its own memory;
// else its strings are parts of the text.
func (p *part) readLines(g *grammar, out *output, clone bool) error {
	if p.err != nil {
		return p.err
	}
	if at := strings.IndexByte(p.text, 0); at >= 0 {
		return fmt.Errorf("line %d: %w", p.first+strings.Count(p.text[:at], "\n"), ErrBinary)
	}
	line := p.first
	for text := range strings.Lines(p.text) {
		text, long := head(text)
		if clone {
			text = strings.Clone(text)
		}
		out.result.Lines++
		if out.take(g, line, text, long || p.long); out.err != nil {
			return out.err
		}
		line++
	}
	return nil
}

// cutter cuts a file into parts.
type cutter struct {
	in   *bufio.Reader
	line int    // the number of the next line
	buf  []byte // bytes that belong to no part yet: the beginning of a line
	err  error  // the error that ended reading, io.EOF or another
	part *part
}

// next reads the next part, and reports whether there is one. A part with an error
// is the last one.
func (c *cutter) next() bool {
	if c.buf == nil {
		c.buf = make([]byte, 0, partSize)
	}
	for len(c.buf) < partSize && c.err == nil {
		var n int
		n, c.err = c.in.Read(c.buf[len(c.buf):partSize])
		c.buf = c.buf[:len(c.buf)+n]
	}
	c.part = &part{first: c.line, done: make(chan partResult, 1)}
	cut := bytes.LastIndexByte(c.buf, '\n') + 1
	switch {
	case c.err == io.EOF && len(c.buf) == 0:
		return false
	case c.err == io.EOF:
		cut = len(c.buf) // the last line has no line end
	case c.err != nil && cut == 0:
		c.fail("reading line", c.err)
		return true
	case cut == 0:
		c.longLine()
		return true
	}
	c.part.text = string(c.buf[:cut])
	c.line += bytes.Count(c.buf[:cut], []byte("\n"))
	c.buf = append(c.buf[:0], c.buf[cut:]...)
	return true
}

// longLine makes a part of a line that is longer than a part.
func (c *cutter) longLine() {
	c.part.text, c.part.long = string(c.buf[:MaxLine+len(bom)]), true
	err := ErrBinary
	if bytes.IndexByte(c.buf, 0) < 0 {
		err = skipLine(c.in)
	}
	c.buf = c.buf[:0]
	switch err {
	case nil:
	case ErrBinary:
		c.fail("line", err)
	case io.EOF:
		c.err = err
	default:
		c.fail("reading line", err)
	}
	c.line++
}

// fail sets the error of the part and ends the file.
func (c *cutter) fail(what string, err error) {
	c.part.err = fmt.Errorf("%s %d: %w", what, c.line, err)
	c.buf, c.err = c.buf[:0], io.EOF
}

// skipLine discards the rest of a line.
func skipLine(in *bufio.Reader) error {
	for {
		rest, err := in.ReadSlice('\n')
		if bytes.IndexByte(rest, 0) >= 0 {
			return ErrBinary
		}
		if err != bufio.ErrBufferFull {
			return err
		}
	}
}
