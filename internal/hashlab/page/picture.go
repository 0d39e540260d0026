package page

import (
	"bytes"
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
	Wide    bool   // it takes the whole width of the page
	SVG     string // an <svg> element, which is a whole file, too

	width vg.Length
}

// phone is the room that a page has on the narrowest phones, of 360 pixels.
const phone = 328

// Least is the width in pixels below which the text of the picture, of 10 points
// at the least, would be less than 8 pixels high.
func (p Picture) Least() int { return int(math.Ceil(0.8 * p.width.Points())) }

// Broad says that the picture has to be scrolled on a phone.
func (p Picture) Broad() bool { return p.Least() > phone }

// File is the name of the picture's file.
func (p Picture) File() string { return p.Name + ".svg" }

// Inline is the picture as a part of the page. All of it was written by package
// chart, which escapes what it is given.
func (p Picture) Inline() template.HTML { return template.HTML(p.SVG) }

// drawPicture makes a picture of a plot, width × height points large.
func drawPicture(p *plot.Plot, width, height vg.Length, name, caption string) (Picture, error) {
	var svg bytes.Buffer
	if err := chart.WriteSVG(&svg, p, width, height); err != nil {
		return Picture{}, err
	}
	return Picture{Name: fileName(name), Title: p.Title.Text, Caption: caption, SVG: clean(svg.String()), width: width}, nil
}

// clean replaces control characters, which neither XML nor HTML may hold: names
// of corpora are names of files.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || r == '\uFFFE' || r == '\uFFFF' {
			return '\uFFFD'
		}
		return r
	}, s)
}

// nameRoom is how many bytes of a name are kept: a file's name has 255, of which
// those that write it take some.
const nameRoom = 100

// fileName is s in small letters, with a dash for everything that might not do
// in the name of a file or an address. Of a long one, as a weighted family of many
// seeds has, it is the begin, and a number made from the whole.
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
	if len(name) <= nameRoom {
		return name
	}
	return fmt.Sprintf("%s-%08x", strings.TrimRight(name[:nameRoom], "-"), crc32.ChecksumIEEE([]byte(s)))
}

// short cuts a name to at most n characters, for axes and legends: of a path the
// begin, which files of one folder have in common, of others the end.
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
