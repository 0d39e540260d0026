package page

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	plottext "gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"spamgate/internal/chart"
	"spamgate/internal/hashlab"
)

var (
	grey  = color.NRGBA{R: 0x60, G: 0x60, B: 0x60, A: 0xFF}
	black = color.NRGBA{A: 0xFF}
	white = color.NRGBA{R: 0xFF, G: 0xFF, B: 0xFF, A: 0xFF}

	// The ends of the scales. They differ in lightness, too, which colour-blind
	// people see.
	blue   = color.NRGBA{R: 0x00, G: 0x5A, B: 0x96, A: 0xFF}
	orange = color.NRGBA{R: 0xC0, G: 0x4A, B: 0x00, A: 0xFF}
)

// matrix draws a table of numbers as coloured cells with the numbers in them. A
// cell that is not a number stays empty.
type matrix struct {
	title         string
	rows, columns []string
	cells         [][]float64
	notes         [][]string // smaller texts below the numbers; nil for none
	pale          [][]bool   // cells without colour: their number may be chance
	wide          bool       // the picture has the whole width of the page
	colour        func(x float64) color.NRGBA
	text          func(x float64) string
}

// newMatrix returns a matrix without numbers, for numbers of two decimals.
func newMatrix(title string, rows, columns []string) *matrix {
	m := &matrix{title: title, rows: rows, columns: columns, text: func(x float64) string { return fmt.Sprintf("%.2f", x) }}
	for range rows {
		m.cells = append(m.cells, slices.Repeat([]float64{math.NaN()}, len(columns)))
		m.pale = append(m.pale, make([]bool, len(columns)))
	}
	return m
}

// gather returns a matrix of rows, of which cell returns a name, a corpus and a
// number.
func gather[T any](title string, rows []T, cell func(T) (name, corpus string, number float64)) *matrix {
	name := func(r T) string { s, _, _ := cell(r); return s }
	corpus := func(r T) string { _, s, _ := cell(r); return s }
	m := newMatrix(title, hashlab.Distinct(rows, name), hashlab.Distinct(rows, corpus))
	for _, r := range rows {
		_, _, number := cell(r)
		m.cells[slices.Index(m.rows, name(r))][slices.Index(m.columns, corpus(r))] = number
	}
	return m
}

// noteSize and noteLine are the size of notes, and the height of their line, in
// points.
const (
	noteSize = 8
	noteLine = 11
)

// noteFont returns a smaller font of the same face.
func noteFont(f font.Font) font.Font {
	f.Size = noteSize
	return f
}

// note adds a smaller text below the number of a cell.
func (m *matrix) note(i, j int, text string) {
	if m.notes == nil {
		for range m.rows {
			m.notes = append(m.notes, make([]string, len(m.columns)))
		}
	}
	m.notes[i][j] = text
}

// mix returns the colour at the part t, 0 to 1, of the way from a to b.
func mix(a, b color.NRGBA, t float64) color.NRGBA {
	t = max(0, min(1, t))
	part := func(x, y uint8) uint8 { return uint8(math.Round(float64(x) + t*(float64(y)-float64(x)))) }
	return color.NRGBA{R: part(a.R, b.R), G: part(a.G, b.G), B: part(a.B, b.B), A: 0xFF}
}

// factorEnd is the power of two at which byFactor's colours end.
const factorEnd = 3

// byFactor returns white for 1, orange for 8 and more, blue for 1/8 and less.
func byFactor(x float64) color.NRGBA {
	t := math.Log2(x) / factorEnd
	if t < 0 {
		return mix(white, blue, -t)
	}
	return mix(white, orange, t)
}

// byPart returns white for 0, blue for 1 and orange for -1.
func byPart(x float64) color.NRGBA {
	if x < 0 {
		return mix(white, orange, -x)
	}
	return mix(white, blue, x)
}

// readable returns black or white, whichever has more contrast with a colour, by
// the relative luminance of WCAG 2.
func readable(c color.NRGBA) color.Color {
	linear := func(v uint8) float64 {
		x := float64(v) / 255
		if x <= 0.04045 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	luminance := 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
	if (luminance+0.05)/0.05 > 1.05/(luminance+0.05) {
		return black
	}
	return white
}

// Plot implements plot.Plotter.
func (m *matrix) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := plottext.Style{Font: p.X.Tick.Label.Font, XAlign: draw.XCenter, YAlign: draw.YCenter, Handler: p.TextHandler}
	for i, row := range m.cells {
		top := float64(len(m.cells) - i)
		for j, value := range row {
			if math.IsNaN(value) {
				continue
			}
			fill := white
			if !m.pale[i][j] {
				fill = m.colour(value)
			}
			left, right, low, high := x(float64(j)), x(float64(j+1)), y(top-1), y(top)
			c.FillPolygon(fill, []vg.Point{{X: left, Y: low}, {X: right, Y: low}, {X: right, Y: high}, {X: left, Y: high}})
			style.Color = readable(fill)
			middle := (low + high) / 2
			if m.notes != nil {
				note := style
				note.Font = noteFont(style.Font)
				c.FillText(note, vg.Point{X: (left + right) / 2, Y: middle - noteLine/2 + lift(note)}, m.notes[i][j])
				middle += noteLine / 2
			}
			c.FillText(style, vg.Point{X: (left + right) / 2, Y: middle + lift(style)}, m.text(value))
		}
	}
}

// picture draws the matrix, as large as its cells need.
func (m *matrix) picture(name, caption string) (Picture, error) {
	p := chart.New(m.title, "", "")
	p.Add(m)
	label := p.X.Tick.Label
	small := label
	small.Font = noteFont(label.Font)
	var across, down plot.ConstantTicks
	var longest, most, number vg.Length // widths of the columns' names, the rows' names, the numbers
	for j, s := range m.columns {
		s = short(s, 20)
		longest = max(longest, label.Width(s))
		across = append(across, plot.Tick{Value: float64(j) + 0.5, Label: s})
	}
	for i, s := range m.rows {
		s = short(s, 30)
		most = max(most, label.Width(s))
		down = append(down, plot.Tick{Value: float64(len(m.rows)-i) - 0.5, Label: s})
		for j, value := range m.cells[i] {
			if !math.IsNaN(value) {
				number = max(number, label.Width(m.text(value)))
			}
			if m.notes != nil {
				number = max(number, small.Width(m.notes[i][j]))
			}
		}
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = across, down
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Tick.Length, axis.LineStyle.Width, axis.Padding = 0, 0, vg.Points(3)
	}
	line := 20 // points
	if m.notes != nil {
		line += noteLine
	}
	// Few columns may be wide. Many are narrow, to be readable on a phone, too.
	cell := max(number+6, min(42, 250/vg.Length(max(1, len(m.columns)))))
	height := vg.Length(len(m.rows)*line + 50)
	if longest > cell-4 {
		p.X.Tick.Label.Rotation = math.Pi / 5
		p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = draw.XRight, draw.YTop
		height += longest * vg.Length(math.Sin(math.Pi/5))
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, float64(len(m.columns)), 0, float64(len(m.rows))
	width := max(320, vg.Length(len(m.columns))*cell+most+24, p.Title.TextStyle.Width(m.title)+24)
	picture, err := drawPicture(p, width, height, name, caption)
	picture.Wide = m.wide
	if m.notes != nil {
		picture.smallest = noteSize
	}
	return picture, err
}
