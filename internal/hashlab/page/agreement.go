package page

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"spamgate/internal/hashlab"
	"spamgate/internal/hashlab/summary"
	"spamgate/internal/text"
)

func agreementSection(r *hashlab.Report) section {
	s := section{ID: "agreement", Title: "Agreement", About: "How two functions of a family answer the same absent keys, corrected for chance (Cohen's kappa): 1 is one function under two names, 0 is independence. " +
		"Pictures and table show each pair's kappa over the corpus where it is furthest from 0."}
	t := dataTable{Caption: numbers, Header: []string{"family", "functions", "kappa furthest from 0", "over", "same index there", "absent keys there"}}
	control := "" // the one of the tables that comes first, the ideal one
	if i := slices.IndexFunc(r.FPR, func(f hashlab.FPRRow) bool { return f.Kind == hashlab.KindControl }); i >= 0 {
		control = r.FPR[i].Name
	}
	add := s.multiples("Full blue, 1.00: one function under two names, as each is to itself. Without colour, 0.00: independent. Orange: one answers yes when the other answers no.")
	for _, rows := range hashlab.Groups(r.Agreement, func(a hashlab.Agreement) string { return a.Family }) {
		family := rows[0].Family
		e := newExtremes(rows)
		related := false
		for i, j := range rows[0].Pairs() {
			x := e.agreements[i][j]
			related = related || math.Abs(x.Kappa[i][j]) >= summary.Related
			t.Rows = append(t.Rows, []string{family, hashlab.HashLabel(e.names[i]) + " and " + hashlab.HashLabel(e.names[j]), fmt.Sprintf("%.4f", x.Kappa[i][j]), x.Corpus, fmt.Sprintf("%.4g%%", 100*x.Same[i][j]), text.Number(x.Keys)})
		}
		if related || family == control { // the ideal one is there for comparison
			add(e.picture(family))
		}
	}
	s.Tables = append(s.Tables, t)
	return s
}

// extremes holds for each two functions of a family the corpus where their kappa
// is furthest from 0.
type extremes struct {
	names      []string
	agreements [][]hashlab.Agreement
}

// newExtremes compares the rows of a family.
func newExtremes(rows []hashlab.Agreement) extremes {
	e := extremes{names: rows[0].Names}
	for range e.names {
		e.agreements = append(e.agreements, slices.Repeat(rows[:1], len(e.names)))
	}
	for _, a := range rows[1:] {
		if !slices.Equal(e.names, a.Names) { // another number of functions
			continue
		}
		for i, row := range e.agreements {
			for j, b := range row {
				if math.Abs(a.Kappa[i][j]) > math.Abs(b.Kappa[i][j]) {
					row[j] = a
				}
			}
		}
	}
	return e
}

func (e extremes) picture(family string) (Picture, error) {
	m := newMatrix(family+": kappa", e.names, e.names)
	m.colour, m.text = byPart, func(x float64) string { return strings.Replace(fmt.Sprintf("%.2f", x), "-0.00", "0.00", 1) }
	for i, row := range e.agreements {
		for j, a := range row {
			m.cells[i][j] = a.Kappa[i][j]
		}
	}
	return m.picture("agreement-"+family, "")
}
