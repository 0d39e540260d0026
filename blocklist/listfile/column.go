package listfile

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// usualColumns are the names by which a column is found when none is named.
var usualColumns = []string{
	"entry", "sender", "email", "e-mail", "email_address", "address", "domain", "domain_name", "hostname", "host",
}

// findColumn finds the column of the entries by the first record, and says
// whether that is a header. Without a name or number it is the one with a usual
// name; where none has, or several, the first. A header without such a name is
// known by its cell, which is no entry, nor a number.
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

// ordinals are how a note counts columns.
var ordinals = []string{"first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"}

// noteColumn notes which column is read, by the first record.
func (o *output) noteColumn(line int, record []string, column int, header bool) {
	if column >= len(record) || !header && len(record) == 1 {
		return // each record says so; there is but one
	}
	which := fmt.Sprintf("number %d", column+1)
	if column < len(ordinals) {
		which = "the " + ordinals[column]
	}
	if header {
		which = fmt.Sprintf("column %q, %s", clip(strings.TrimSpace(record[column])), which)
	} else {
		which = "a column without a name, " + which
	}
	o.result.Notes = append(o.result.Notes, fmt.Sprintf("line %d: the entries are in %s", line, which))
}

// columnHint is for a column that seems to be the wrong one.
const columnHint = "column (--column) is the name or the number of the column with the entries"

// cell reads one record's cell.
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
	s := strings.Clone(record[column]) // a record is one text, descriptions and all
	if isRowNumber(s) {
		// In a list of addresses that would be the start of one; in a table it
		// is a number of the rows.
		o.refuse(line, Problem{Text: s, What: "a number is no sender", Hint: columnHint})
		return
	}
	o.uncommented(line, s)
}

// isRowNumber reports whether a cell has digits alone.
func isRowNumber(cell string) bool {
	cell = strings.TrimSpace(cell)
	return cell != "" && strings.Trim(cell, "0123456789") == ""
}

// checkColumn makes a table invalid of which nothing can be looked up, such as one
// of client addresses: without a fault it would pass for a list that is empty.
func (o *output) checkColumn(column, line int) {
	if r := o.result; r.Entries+r.Expired+r.Invalid == 0 && r.Unsupported > 0 {
		o.refuse(line, Problem{
			Text: "column " + strconv.Itoa(column+1),
			What: "no line of the table has an entry there", Hint: columnHint,
		})
	}
}
