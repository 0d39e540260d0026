package hashlab

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Widths of what WriteText prints, in columns.
const (
	leastWidth = 60
	indent     = "  "
)

// column is one of a table's. The first holds names and is set flush left, the
// others flush right.
type column struct {
	title string

	// spare says that a narrow table may do without the column.
	spare bool
}

// textTable is rows of text under titles.
type textTable struct {
	columns []column
	rows    [][]string
}

func (t *textTable) add(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the table no wider than width. What is too wide first loses its
// spare columns, from the right; then its names go to lines of their own; then
// each row becomes a paragraph.
func (t *textTable) write(w io.Writer, width int) {
	use := t.all()
	for i := len(use) - 1; i > 0 && t.total(use) > width; i-- {
		if t.columns[use[i]].spare {
			use = append(use[:i], use[i+1:]...)
		}
	}
	widths := t.widths(use)
	apart := t.total(use) > width
	if apart {
		if t.total(use)-widths[0] > width {
			t.paragraphs(w, use, width)
			return
		}
		widths[0] = 0
	}
	titles := make([]string, len(t.columns))
	for i, c := range t.columns {
		titles[i] = c.title
	}
	for _, row := range append([][]string{titles}, t.rows...) {
		name := row[0]
		if apart {
			for _, line := range wrap(name, width-len(indent)) {
				fmt.Fprintln(w, indent+line)
			}
			name = ""
		}
		line := indent + pad(name, widths[0], false)
		for j, c := range use[1:] {
			line += indent + pad(row[c], widths[j+1], true)
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

// paragraphs prints a row as its name, and below it what the columns say.
func (t *textTable) paragraphs(w io.Writer, use []int, width int) {
	for _, row := range t.rows {
		for _, line := range wrap(row[0], width-len(indent)) {
			fmt.Fprintln(w, indent+line)
		}
		cells := make([]string, 0, len(use))
		for _, c := range use[1:] {
			cells = append(cells, t.columns[c].title+" "+row[c])
		}
		for _, line := range wrap(strings.Join(cells, "; "), width-2*len(indent)) {
			fmt.Fprintln(w, indent+indent+line)
		}
	}
}

// all are the numbers of all columns.
func (t *textTable) all() []int {
	use := make([]int, len(t.columns))
	for i := range use {
		use[i] = i
	}
	return use
}

// fits reports whether the whole table is no wider than width.
func (t *textTable) fits(width int) bool { return t.total(t.all()) <= width }

// widths are those of the columns in use.
func (t *textTable) widths(use []int) []int {
	widths := make([]int, len(use))
	for i, c := range use {
		widths[i] = utf8.RuneCountInString(t.columns[c].title)
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[c]))
		}
	}
	return widths
}

// total is the width of a line of these columns.
func (t *textTable) total(use []int) int {
	sum := 0
	for _, w := range t.widths(use) {
		sum += len(indent) + w
	}
	return sum
}

// pad fills s up to width columns.
func pad(s string, width int, right bool) string {
	fill := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
	if right {
		return fill + s
	}
	return s + fill
}

// wrap breaks text between words, and a longer word after a comma or where it
// must be, into lines of at most width characters.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
		for runes := []rune(line); len(runes) > width; runes = []rune(line) {
			cut := width
			if i := strings.LastIndexByte(string(runes[:width]), ','); i > 0 {
				cut = utf8.RuneCountInString(string(runes[:width])[:i+1])
			}
			lines = append(lines, string(runes[:cut]))
			line = string(runes[cut:])
		}
	}
	return append(lines, line)
}
