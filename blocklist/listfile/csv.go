package listfile

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
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
			column = found.pos
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
	if pos := bytes.IndexByte(p[:n], 0); pos >= 0 {
		return 0, fmt.Errorf("line %d: %w", t.feeds+bytes.Count(p[:pos], []byte("\n"))+1, ErrBinary)
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

// usualColumns are the names that a column of entries usually has.
var usualColumns = []string{
	"entry", "sender", "email", "e-mail", "email_address", "address", "domain", "domain_name", "hostname", "host",
}

// column is the column of the entries in a table.
type column struct {
	pos    int    // from 0
	name   string // from a header; "" if the column has none
	header bool   // the first record is that header
}

// findColumn finds the column of the entries from the first record and from a header
// in a comment, which counts if it has as many cells. Without Options.Column it is the
// only one with a usual name, else the first. A first record without usual names is
// recognised as a header by a cell that is neither an entry nor a number.
func findColumn(o Options, record, commented []string) (column, error) {
	if len(commented) != len(record) {
		commented = nil
	}
	want := strings.TrimSpace(o.Column)
	if n, err := strconv.Atoi(want); err == nil {
		if n < 1 {
			return column{}, fmt.Errorf("%w: column %d: columns count from 1", ErrSyntax, n)
		}
		return columnAt(n-1, record, commented), nil
	}
	names := [][]string{{want}}
	if want == "" {
		names = [][]string{usualColumns, {"url"}}
	}
	for _, names := range names {
		for _, header := range [][]string{record, commented} {
			switch named := columnsNamed(header, names...); {
			case len(named) == 1 || len(named) > 1 && want != "":
				return column{named[0], header[named[0]], &header[0] == &record[0]}, nil
			case len(named) > 1:
				return column{0, header[0], &header[0] == &record[0]}, nil
			}
		}
	}
	if want != "" {
		header := record
		if commented != nil {
			header = commented
		}
		return column{}, fmt.Errorf("%w: no column is called %q; the header has: %s", ErrSyntax, want, clip(strings.Join(header, ", ")))
	}
	return columnAt(0, record, commented), nil
}

// columnAt returns a column that is known by its number.
func columnAt(pos int, record, commented []string) column {
	switch {
	case pos >= len(record):
		return column{pos: pos}
	case commented != nil:
		return column{pos: pos, name: commented[pos]}
	}
	cell := record[pos]
	if _, err := parseEntry(cell, Options{}); err != nil && !strings.ContainsAny(cell, ".@") && !isRowNumber(cell) {
		return column{pos, cell, true}
	}
	return column{pos: pos}
}

// columnsNamed returns the columns that have one of the names.
func columnsNamed(header []string, names ...string) (columns []int) {
	for i, cell := range header {
		cell = strings.TrimSpace(cell)
		if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(cell, name) }) {
			columns = append(columns, i)
		}
	}
	return columns
}

// noteColumn notes which of the columns of the first record is read.
func (o *output) noteColumn(line, columns int, c column) {
	if c.pos >= columns || c.name == "" && columns == 1 {
		return // every record is refused, or there is only one column
	}
	name := "without a name"
	if c.name != "" {
		name = strconv.Quote(clip(strings.TrimSpace(c.name)))
	}
	o.result.Notes = append(o.result.Notes, fmt.Sprintf("line %d: the entries are in column %d, %s", line, c.pos+1, name))
}

// columnHint is the hint for a column that seems to be the wrong one.
const columnHint = "column (--column) is the name or the number of the column with the entries"

// cell reads the entry of a record.
func (o *output) cell(r *csv.Reader, record []string, column int) {
	if column >= len(record) {
		line, _ := r.FieldPos(0)
		o.refuse(line, Problem{
			Text: strings.Join(record, ", "),
			What: fmt.Sprintf("a record without column %d: it ends with column %d", column+1, len(record)),
			Hint: columnHint,
		})
		return
	}
	line, _ := r.FieldPos(column)
	s := strings.Clone(record[column]) // the whole record is one string
	if isRowNumber(s) {
		// In a list of addresses that would begin an address; in a table it is the
		// number of a row.
		o.refuse(line, Problem{Text: s, What: "a number is not a sender", Hint: columnHint})
		return
	}
	o.uncommented(line, s)
}

// isRowNumber reports whether a cell consists of digits.
func isRowNumber(cell string) bool {
	cell = strings.TrimSpace(cell)
	return cell != "" && strings.Trim(cell, "0123456789") == ""
}

// checkColumn makes a table invalid if its column has only unsupported lines, such
// as client addresses: it would pass for an empty list.
func (o *output) checkColumn(column, line int) {
	if r := o.result; r.Entries+r.Expired+r.Invalid == 0 && r.Unsupported > 0 {
		o.refuse(line, Problem{
			Text: "column " + strconv.Itoa(column+1),
			What: "the column has no entry", Hint: columnHint,
		})
	}
}
