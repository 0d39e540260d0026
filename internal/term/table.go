package term

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Column is a column of a table. The first one is flush left, the others are
// flush right unless Left is set.
type Column struct {
	Title string
	Left  bool
	Spare bool // a table that would be too wide omits the column
}

// Table is rows of text under titles, with two spaces between columns.
type Table struct {
	Indent  string // begins each line
	Columns []Column
	rows    [][]string
}

const gap = "  "

// Add adds a row, with a cell for each column.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// Fits reports whether no line of the table is wider than width.
func (t *Table) Fits(width int) bool { return t.width(t.all()) <= width }

// Write writes the table in lines of at most width characters; 0 is no limit. If
// the table is wider it loses its spare columns, from the right; then its first
// column gets lines of its own; then each row becomes a paragraph.
func (t *Table) Write(w io.Writer, width int) {
	use := t.all()
	fits := func() bool { return width <= 0 || t.width(use) <= width }
	for i := len(use) - 1; i > 0 && !fits(); i-- {
		if t.Columns[use[i]].Spare {
			use = slices.Delete(use, i, i+1)
		}
	}
	widths := t.widths(use)
	apart := !fits()
	if apart {
		if t.width(use)-widths[0] > width {
			t.paragraphs(w, use, width)
			return
		}
		widths[0] = 0
	}
	titles := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		titles[i] = c.Title
	}
	for _, row := range append([][]string{titles}, t.rows...) {
		first := row[0]
		if apart {
			t.writeName(w, first, width)
			first = ""
		}
		line := t.Indent + pad(first, widths[0], true)
		for j, c := range use[1:] {
			line += gap + pad(row[c], widths[j+1], t.Columns[c].Left)
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

// paragraphs writes each row as its first cell, and the other cells with their
// titles below it.
func (t *Table) paragraphs(w io.Writer, use []int, width int) {
	for _, row := range t.rows {
		t.writeName(w, row[0], width)
		cells := make([]string, 0, len(use))
		for _, c := range use[1:] {
			cells = append(cells, t.Columns[c].Title+" "+row[c])
		}
		for _, line := range Wrap(strings.Join(cells, "; "), width-len(t.Indent+gap)) {
			fmt.Fprintln(w, t.Indent+gap+line)
		}
	}
}

// writeName writes a row's first cell on lines of its own.
func (t *Table) writeName(w io.Writer, name string, width int) {
	for _, line := range Wrap(name, width-len(t.Indent)) {
		fmt.Fprintln(w, t.Indent+line)
	}
}

// all returns the numbers of all columns.
func (t *Table) all() []int {
	use := make([]int, len(t.Columns))
	for i := range use {
		use[i] = i
	}
	return use
}

// widths returns the width of each of the columns in use.
func (t *Table) widths(use []int) []int {
	widths := make([]int, len(use))
	for i, c := range use {
		widths[i] = utf8.RuneCountInString(t.Columns[c].Title)
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[c]))
		}
	}
	return widths
}

// width returns the width of a line of the columns in use.
func (t *Table) width(use []int) int {
	sum := len(t.Indent) - len(gap)
	for _, w := range t.widths(use) {
		sum += len(gap) + w
	}
	return sum
}

// pad fills s with spaces up to width characters.
func pad(s string, width int, left bool) string {
	fill := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
	if left {
		return s + fill
	}
	return fill + s
}
