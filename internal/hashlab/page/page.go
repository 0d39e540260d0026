// Package page shows a report of the hash laboratory with pictures: as one HTML
// page that needs neither network nor JavaScript, or as SVG files.
package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"spamgate/internal/hashlab"
	"spamgate/internal/text"
)

//go:embed page.html
var pageText string

//go:embed style.css
var style string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// section is a part of the page.
type section struct {
	ID, Title string
	About     string // what the numbers mean, and how to read the pictures
	Pictures  []Picture
	Tables    []dataTable
}

// dataTable is a table under a picture. The first column names the rows.
type dataTable struct {
	Caption string
	Header  []string
	Rows    [][]string
}

func (t *dataTable) add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Write writes the page.
func Write(w io.Writer, r *hashlab.Report) error {
	sections, err := sections(r)
	if err != nil {
		return err
	}
	var text strings.Builder
	err = pageTemplate.Execute(&text, struct {
		Style       template.CSS
		Interrupted bool
		Summary     []hashlab.Finding
		Sections    []section
		Corpora     dataTable
		Manifest    [][2]string
	}{template.CSS(style), r.Interrupted, r.Summary, sections, corporaTable(r), hashlab.ManifestLines(r)}) // our own file
	if err == nil {
		_, err = io.WriteString(w, clean(text.String()))
	}
	if err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// corporaTable is what the hashes were given.
func corporaTable(r *hashlab.Report) dataTable {
	t := dataTable{Header: []string{"corpus", "keys", "bytes", "what"}}
	for _, c := range r.Manifest.Corpora {
		t.add(c.Name, text.Number(c.Keys), text.Number(c.Bytes), c.What)
	}
	return t
}

// Pictures draws all pictures of the page, in its order.
func Pictures(r *hashlab.Report) ([]Picture, error) {
	sections, err := sections(r)
	if err != nil {
		return nil, err
	}
	var all []Picture
	for _, s := range sections {
		all = append(all, s.Pictures...)
	}
	return all, nil
}

// sections are the parts of the page for which the report has numbers.
func sections(r *hashlab.Report) ([]section, error) {
	var all []section
	for _, make := range []func(*hashlab.Report) (section, error){
		ratesSection, fillSection, messagesSection, passSection, collisionsSection,
		uniformitySection, avalancheSection, agreementSection, speedSection,
	} {
		s, err := make(r)
		if err != nil {
			return nil, err
		}
		if len(s.Pictures)+len(s.Tables) > 0 {
			all = append(all, s)
		}
	}
	return all, nil
}
