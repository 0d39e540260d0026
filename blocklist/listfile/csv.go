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
	comma := separator(in)
	configureCSV(r, comma)
	commented := commentedHeader(in, comma)
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
			line, _ := r.FieldPos(0)
			found, err := findColumn(o.options, record, commented)
			if err != nil {
				return fmt.Errorf("line %d: %w", line, err)
			}
			column = found.at
			o.noteColumn(line, len(record), found)
			if found.header {
				continue
			}
		}
		if o.cell(r, record, column); o.err != nil {
			return o.err
		}
	}
}

// configureCSV sets how records are read.
func configureCSV(r *csv.Reader, comma rune) {
	r.Comma, r.Comment, r.FieldsPerRecord, r.ReuseRecord = comma, '#', -1, true
	r.TrimLeadingSpace = comma != '\t' // else quotes after a space would be part of the cell
}

// commentedHeader returns the cells of the last comment before the first record, or
// nil if there is none: some publishers write the header as "# id,domain,reason".
func commentedHeader(in *bufio.Reader, comma rune) []string {
	start, _ := in.Peek(readBuffer) // reading returns an error again
	var comment []byte
	for line := range bytes.Lines(start) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if line[0] != '#' {
			break
		}
		comment = line
	}
	r := csv.NewReader(bytes.NewReader(bytes.TrimLeft(comment, "# ")))
	configureCSV(r, comma)
	cells, err := r.Read()
	if err != nil {
		return nil
	}
	return cells
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
