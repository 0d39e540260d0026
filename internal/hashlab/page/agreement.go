package page

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"spamgate/internal/hashlab"
	"spamgate/internal/text"
)

func agreementSection(r *hashlab.Report) (section, error) {
	s := section{ID: "agreement", Title: "Agreement", About: "How two functions of a family answer the same absent keys, corrected for chance (Cohen's kappa): 1 is one function under two names, 0 is independence. " +
		"Pictures and table tell each pair's kappa over the corpus where it is furthest from 0."}
	if len(r.Agreement) == 0 {
		return s, nil
	}
	t := dataTable{Caption: "The numbers", Header: []string{"family", "functions", "kappa furthest from 0", "over", "same index there", "absent keys there"}}
	control := "" // the ideal one stands first in the tables
	if i := slices.IndexFunc(r.FPR, func(f hashlab.FPRRow) bool { return f.Kind == hashlab.KindControl }); i >= 0 {
		control = r.FPR[i].Name
	}
	for _, family := range hashlab.Names(r.Agreement, func(a hashlab.Agreement) string { return a.Family }) {
		e := extremesOf(r, family)
		strange := false
		for i, name := range e.names {
			for j := i + 1; j < len(e.names); j++ {
				x := e.at[i][j]
				strange = strange || math.Abs(x.Kappa[i][j]) >= hashlab.Related
				t.add(family, name+" and "+e.names[j], fmt.Sprintf("%.4f", x.Kappa[i][j]), x.Corpus, fmt.Sprintf("%.4g%%", 100*x.Same[i][j]), text.Number(x.Keys))
			}
		}
		// A picture of those that show something, and of the ideal to compare.
		if !strange && family != control {
			continue
		}
		picture, err := e.picture(family)
		if err != nil {
			return s, err
		}
		s.Pictures = append(s.Pictures, picture)
	}
	s.Tables = append(s.Tables, t)
	return s, nil
}

// extremes says for each two functions of a family over which corpus their kappa
// is furthest from 0.
type extremes struct {
	names []string
	at    [][]hashlab.Agreement
}

func extremesOf(r *hashlab.Report, family string) extremes {
	var e extremes
	for _, a := range r.Agreement {
		switch {
		case a.Family != family:
		case e.names == nil:
			e.names = a.Names
			for range a.Names {
				e.at = append(e.at, slices.Repeat([]hashlab.Agreement{a}, len(a.Names)))
			}
		case slices.Equal(e.names, a.Names): // the same number of functions, too
			for i, row := range e.at {
				for j, b := range row {
					if math.Abs(a.Kappa[i][j]) > math.Abs(b.Kappa[i][j]) {
						row[j] = a
					}
				}
			}
		}
	}
	return e
}

func (e extremes) picture(family string) (Picture, error) {
	m := newMatrix(family+": kappa", len(e.names), e.names)
	m.rows, m.colour, m.text = e.names, byPart, func(x float64) string { return strings.Replace(fmt.Sprintf("%.2f", x), "-0.00", "0.00", 1) }
	for i, row := range e.at {
		for j, a := range row {
			m.cells[i][j] = a.Kappa[i][j]
		}
	}
	return m.picture("agreement-"+family, "Full blue, 1.00: one function under two names, as each is to itself. Without colour, 0.00: independent. Orange: one answers yes where the other says no.")
}
