package page

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/crc32"
	"html/template"
	"math"
	"strings"
	"unicode"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"spamgate/internal/chart"
)

// Picture is a picture of the page.
type Picture struct {
	Name    string // for a file: letters, digits and dashes
	Title   string
	Caption string // how to read it
	Wide    bool   // it has the whole width of the page
	SVG     string // an <svg> element, which is also a complete file

	width    vg.Length
	smallest vg.Length // the height of its smallest text; 0 means the ticks' 10 points
}

// phone is the width of a page on the narrowest phones, of 360 pixels.
const phone = 328

// Least returns the width in pixels below which the smallest text of the picture
// would be less than 8 pixels high.
func (p Picture) Least() int {
	return int(math.Ceil(8 / cmp.Or(p.smallest.Points(), 10) * p.width.Points()))
}

// Broad reports whether the picture must be scrolled on a phone.
func (p Picture) Broad() bool { return p.Least() > phone }

// File returns the name of the picture's file.
func (p Picture) File() string { return p.Name + ".svg" }

// Inline returns the picture as a part of the page. Package chart wrote it and
// escaped the texts in it.
func (p Picture) Inline() template.HTML { return template.HTML(p.SVG) }

// drawPicture draws a plot, width × height points large.
func drawPicture(p *plot.Plot, width, height vg.Length, name, caption string) (Picture, error) {
	var svg bytes.Buffer
	if err := chart.WriteSVG(&svg, p, width, height); err != nil {
		return Picture{}, err
	}
	return Picture{Name: fileName(name), Title: p.Title.Text, Caption: caption, SVG: clean(svg.String()), width: width}, nil
}

// clean replaces control characters, which XML and HTML forbid. They may be in the
// names of files, and so of corpora.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || r == '\uFFFE' || r == '\uFFFF' {
			return '\uFFFD'
		}
		return r
	}, s)
}

// maxFileName is the longest name in bytes. A file's may have 255, but the name of
// a temporary file is longer.
const maxFileName = 100

// fileName returns s in lower case, with a dash for all that is unsafe in the name
// of a file or a URL. A long name, as of a weighted family with many seeds, is cut
// and gets a checksum of the whole.
func fileName(s string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(s))
	for strings.Contains(name, "--") {
		name = strings.ReplaceAll(name, "--", "-")
	}
	name = strings.Trim(name, "-")
	if len(name) <= maxFileName {
		return name
	}
	return fmt.Sprintf("%s-%08x", strings.TrimRight(name[:maxFileName], "-"), crc32.ChecksumIEEE([]byte(s)))
}

// short cuts a name to at most n characters, for axes and legends. A path loses its
// beginning, which files of one folder share, and any other name its end.
func short(s string, n int) string {
	runes := []rune(s)
	switch {
	case len(runes) <= n:
		return s
	case strings.Contains(s, "/"):
		return "…" + string(runes[len(runes)-n+1:])
	}
	return string(runes[:n-1]) + "…"
}
