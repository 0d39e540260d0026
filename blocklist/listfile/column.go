package listfile

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// usualColumns are the names that a column of entries usually has.
var usualColumns = []string{
	"entry", "sender", "email", "e-mail", "email_address", "address", "domain", "domain_name", "hostname", "host",
}

// column is the column of the entries in a table.
type column struct {
	at     int    // from 0
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
func columnAt(at int, record, commented []string) column {
	switch {
	case at >= len(record):
		return column{at: at}
	case commented != nil:
		return column{at: at, name: commented[at]}
	}
	cell := record[at]
	if _, err := parseEntry(cell, Options{}); err != nil && !strings.ContainsAny(cell, ".@") && !isRowNumber(cell) {
		return column{at, cell, true}
	}
	return column{at: at}
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
	if c.at >= columns || c.name == "" && columns == 1 {
		return // every record is refused, or there is only one column
	}
	name := "without a name"
	if c.name != "" {
		name = strconv.Quote(clip(strings.TrimSpace(c.name)))
	}
	o.result.Notes = append(o.result.Notes, fmt.Sprintf("line %d: the entries are in column %d, %s", line, c.at+1, name))
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
