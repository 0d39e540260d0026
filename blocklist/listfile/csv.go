package listfile

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxRecord bounds a record of a CSV file or an element of a JSON array, since a
// quote that is never closed would swallow the rest of the file.
const maxRecord = 1 << 20

// readCSV reads a table of comma-separated values (RFC 4180). If the first record
// has no comma, semicolons or tabs may separate the cells. A cell is an entry of a
// plain list, without a comment.
func readCSV(o *output, in *bufio.Reader) error {
	if err := skipMark(in); err != nil {
		return err
	}
	text := &textReader{in: in}
	r := csv.NewReader(text)
	r.Comma, r.Comment, r.FieldsPerRecord, r.ReuseRecord = separator(in), '#', -1, true
	text.limit = maxRecord
	defer func() { o.result.Lines = text.lines() }()
	column := -1
	for {
		record, err := r.Read()
		text.limit = r.InputOffset() + maxRecord
		var syntax *csv.ParseError
		switch {
		case err == io.EOF:
			o.checkColumn(column, text.lines())
			return nil
		case errors.As(err, &syntax):
			o.refuse(syntax.StartLine, Problem{
				Text: strings.Join(record, string(r.Comma)), What: syntax.Err.Error(),
				Hint: `enclose a cell that contains a quote in quotes, and double the quote`,
			})
			continue
		case err != nil:
			return err
		}
		if column < 0 {
			var header bool
			line, _ := r.FieldPos(0)
			if column, header, err = findColumn(o.options, record); err != nil {
				return fmt.Errorf("line %d: %w", line, err)
			}
			o.noteColumn(line, record, column, header)
			if header {
				continue
			}
		}
		if o.cell(r, record, column); o.err != nil {
			return o.err
		}
	}
}

// skipMark skips a byte order mark.
func skipMark(in *bufio.Reader) error {
	if start, _ := in.Peek(len(bom)); string(start) != bom {
		return nil // reading returns an error again
	}
	_, err := in.Discard(len(bom))
	return err
}

// separator returns the character between cells, from the first line that is not a
// comment.
func separator(in *bufio.Reader) rune {
	start, _ := in.Peek(readBuffer) // reading returns an error again
	for line := range bytes.Lines(start) {
		if len(bytes.TrimSpace(line)) == 0 || line[0] == '#' {
			continue
		}
		for _, c := range []byte(",;\t") {
			if bytes.IndexByte(line, c) >= 0 {
				return rune(c)
			}
		}
		break
	}
	return ','
}

// textReader reads a text, counts its lines and fails at a NUL.
type textReader struct {
	in    *bufio.Reader
	read  int64
	feeds int
	last  byte

	limit int64 // number of bytes that may be read; 0 means all
}

func (t *textReader) Read(p []byte) (int, error) {
	if t.limit != 0 && t.read > t.limit {
		return 0, fmt.Errorf("line %d: %w: a record of more than %d bytes, perhaps a quote that is never closed", t.lines(), ErrSyntax, maxRecord)
	}
	n, err := t.in.Read(p)
	if at := bytes.IndexByte(p[:n], 0); at >= 0 {
		return 0, fmt.Errorf("line %d: %w", t.feeds+bytes.Count(p[:at], []byte("\n"))+1, ErrBinary)
	}
	t.read += int64(n)
	t.feeds += bytes.Count(p[:n], []byte("\n"))
	if n > 0 {
		t.last = p[n-1]
	}
	if err != nil && err != io.EOF {
		err = fmt.Errorf("reading line %d: %w", t.lines(), err)
	}
	return n, err
}

// lines returns the number of lines that were read, with or without a last line end.
func (t *textReader) lines() int {
	if t.last != '\n' && t.read > 0 {
		return t.feeds + 1
	}
	return t.feeds
}
