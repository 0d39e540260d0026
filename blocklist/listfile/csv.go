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

// maxRecord bounds a record of a CSV file, which may have line feeds inside
// quotes: a quote that is never closed would have the rest of the file in it.
const maxRecord = 1 << 20

// readCSV reads a table of comma-separated values (RFC 4180). A semicolon or a
// tabulator may stand for the comma where the first record has none. A cell is
// read as an entry of a plain list, without a comment.
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
				Hint: `put a cell that has a quote in it in quotes, and write the quote twice`,
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
		return nil // an error comes again when it is read
	}
	_, err := in.Discard(len(bom))
	return err
}

// separator finds what stands between cells, by the first line that is no
// comment.
func separator(in *bufio.Reader) rune {
	start, _ := in.Peek(readBuffer) // an error comes again when it is read
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

// textReader reads a text as it is, and fails at a NUL.
type textReader struct {
	in    *bufio.Reader
	read  int64
	feeds int
	last  byte

	limit int64 // up to where may be read; 0: to the end
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

// lines returns how many lines were read, the last one with or without its end.
func (t *textReader) lines() int {
	if t.last != '\n' && t.read > 0 {
		return t.feeds + 1
	}
	return t.feeds
}
