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

// findColumn finds the column of the entries from the first record, and reports
// whether that is a header. Without Options.Column it is the only one with a usual
// name, else the first. A header without usual names is recognised by a cell that
// is neither an entry nor a number.
func findColumn(o Options, record []string) (column int, header bool, err error) {
	name := strings.TrimSpace(o.Column)
	if n, err := strconv.Atoi(name); err == nil {
		if n < 1 {
			return 0, false, fmt.Errorf("%w: column %d: columns count from 1", ErrSyntax, n)
		}
		column = n - 1
	} else if name != "" {
		named := columnsNamed(record, name)
		if len(named) == 0 {
			return 0, false, fmt.Errorf("%w: no column is called %q; the first line has: %s", ErrSyntax, name, clip(strings.Join(record, ", ")))
		}
		return named[0], true, nil
	} else if usual := columnsNamed(record, usualColumns...); len(usual) == 1 {
		return usual[0], true, nil
	} else if len(usual) > 1 {
		return 0, true, nil
	}
	if column < len(record) {
		_, err := parseEntry(record[column], Options{})
		header = err != nil && !strings.ContainsAny(record[column], ".@") && !isRowNumber(record[column])
	}
	return column, header, nil
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

// noteColumn notes which column is read.
func (o *output) noteColumn(line int, record []string, column int, header bool) {
	if column >= len(record) || !header && len(record) == 1 {
		return // every record is refused, or there is only one column
	}
	name := "without a name"
	if header {
		name = strconv.Quote(clip(strings.TrimSpace(record[column])))
	}
	o.result.Notes = append(o.result.Notes, fmt.Sprintf("line %d: the entries are in column %d, %s", line, column+1, name))
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
