package hashlab

import (
	"fmt"
	"slices"

	"spamgate/internal/text"
)

// grid is a table with corpora across.
type grid struct {
	what           string // the rows are
	names, corpora []string
	cells          map[[2]string]string
}

func newGrid(what string) *grid { return &grid{what: what, cells: map[[2]string]string{}} }

// put sets a cell. Rows and columns come in the order in which they are first
// put.
func (g *grid) put(name, corpus, cell string) {
	if !slices.Contains(g.names, name) {
		g.names = append(g.names, name)
	}
	if !slices.Contains(g.corpora, corpus) {
		g.corpora = append(g.corpora, corpus)
	}
	g.cells[[2]string{name, corpus}] = cell
}

// grid writes a grid, as many corpora side by side as there is room for.
func (t *textReport) grid(caption string, g *grid) {
	if len(g.names) == 0 {
		return
	}
	// A part at a time, ever fewer columns until they fit.
	for rest := g.corpora; len(rest) > 0; {
		n := len(rest)
		rows := t.columns(g, rest)
		for n > 1 && !rows.fits(t.width) {
			n--
			rows = t.columns(g, rest[:n])
		}
		t.table(caption, rows)
		rest = rest[n:]
	}
}

// columns is the part of the grid with these corpora.
func (t *textReport) columns(g *grid, corpora []string) *textTable {
	rows := &textTable{columns: []column{{title: g.what}}}
	for _, c := range corpora {
		rows.columns = append(rows.columns, column{title: t.number(c)})
	}
	for _, name := range g.names {
		row := []string{text.Printable(name)}
		for _, c := range corpora {
			cell, ok := g.cells[[2]string{name, c}]
			if !ok {
				cell = "-"
			}
			row = append(row, cell)
		}
		rows.add(row...)
	}
	return rows
}

// number is a corpus's number in the table of corpora, or where that lacks it the
// begin of its name.
func (t *textReport) number(corpus string) string {
	i := slices.IndexFunc(t.report.Manifest.Corpora, func(c CorpusInfo) bool { return c.Name == corpus })
	if i < 0 {
		const room = 12
		name := []rune(text.Printable(corpus))
		return string(name[:min(len(name), room)])
	}
	return fmt.Sprintf("[%d]", i+1)
}
