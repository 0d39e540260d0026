// Package page shows a report of package hashlab with pictures: as one HTML page
// that needs neither network nor JavaScript, or as SVG files.
package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"spamgate/internal/hashlab"
	"spamgate/internal/hashlab/render"
	"spamgate/internal/hashlab/summary"
	"spamgate/internal/text"
)

//go:embed page.html
var pageText string

//go:embed style.css
var style string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// section is a part of the page. Its tables are in the appendix.
type section struct {
	ID, Title string
	About     string // what the numbers mean
	Figures   []figure
	Tables    []dataTable
	err       error // the first one of drawing
}

// figure is one picture, or small multiples: pictures of the same kind beside each
// other, with one caption.
type figure struct {
	Pictures []Picture
	Caption  string // how to read the pictures
	Wide     bool   // it has the whole width of the page
}

// Broad reports whether a picture must be scrolled on a phone.
func (f figure) Broad() bool { return slices.ContainsFunc(f.Pictures, Picture.Broad) }

// add adds a figure of one picture, which drawPicture returned.
func (s *section) add(p Picture, err error) {
	s.multiples(p.Caption)(p, err)
	s.Figures[len(s.Figures)-1].Wide = p.Wide
}

// multiples begins a figure of small multiples, and returns a function that adds a
// picture to it. A figure without pictures does not appear.
func (s *section) multiples(caption string) (add func(Picture, error)) {
	f := len(s.Figures)
	return func(p Picture, err error) {
		if s.err == nil {
			s.err = err
		}
		if f == len(s.Figures) {
			s.Figures = append(s.Figures, figure{Caption: caption})
		}
		s.Figures[f].Pictures = append(s.Figures[f].Pictures, p)
		s.Figures[f].Wide = len(s.Figures[f].Pictures) > 1
	}
}

// dataTable is a table of the appendix. The first column names the rows.
type dataTable struct {
	Caption string
	Header  []string
	Rows    [][]string
}

// table returns a table of rows, whose cells row returns.
func table[T any](caption string, header []string, rows []T, row func(T) []string) dataTable {
	t := dataTable{Caption: caption, Header: header}
	for _, r := range rows {
		t.Rows = append(t.Rows, row(r))
	}
	return t
}

// numbers is the caption of a section's only table.
const numbers = "All rows"

// Write writes the page.
func Write(w io.Writer, r *hashlab.Report) error {
	sections, err := sections(r)
	if err != nil {
		return err
	}
	corpora := table("", []string{"corpus", "keys", "bytes", "what"}, r.Manifest.Corpora, func(c hashlab.CorpusInfo) []string {
		return []string{c.Name, text.Number(c.Keys), text.Number(c.Bytes), c.What}
	})
	short, err := inShort(r)
	if err != nil {
		return err
	}
	var html strings.Builder
	err = pageTemplate.Execute(&html, struct {
		Style       template.CSS
		Interrupted bool
		Short       section
		Sentences   []string
		Summary     []hashlab.Finding
		Sections    []section
		Corpora     dataTable
		Manifest    [][2]string
	}{template.CSS(style), r.Interrupted, short, summary.Short(r), r.Summary, sections, corpora, render.ManifestLines(r)}) // style is our own file
	if err == nil {
		_, err = io.WriteString(w, clean(html.String()))
	}
	if err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// Pictures draws all pictures of the page, in its order.
func Pictures(r *hashlab.Report) ([]Picture, error) {
	sections, err := sections(r)
	if err != nil {
		return nil, err
	}
	short, err := inShort(r)
	if err != nil {
		return nil, err
	}
	var all []Picture
	for _, s := range append([]section{short}, sections...) {
		for _, f := range s.Figures {
			all = append(all, f.Pictures...)
		}
	}
	return all, nil
}

// sections returns the parts of the page for which the report has rows.
func sections(r *hashlab.Report) ([]section, error) {
	var all []section
	for _, part := range []struct {
		rows int
		draw func(*hashlab.Report) section
	}{
		{len(r.FPR), ratesSection},
		{len(lines(r.FPR)), fillSection},
		{len(r.Messages), messagesSection},
		{len(r.PassRates), passSection},
		{len(r.Collisions), collisionsSection},
		{len(r.Uniformity), uniformitySection},
		{len(r.Avalanche), avalancheSection},
		{len(r.Agreement), agreementSection},
		{len(r.Speed), speedSection},
	} {
		if part.rows == 0 {
			continue
		}
		s := part.draw(r)
		if s.err != nil {
			return nil, s.err
		}
		all = append(all, s)
	}
	return all, nil
}
