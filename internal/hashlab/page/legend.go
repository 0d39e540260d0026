package page

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// legend explains a picture's marks, in a band between the title and the plot.
// gonum/plot's own legend is in the plot, and may cover data.
type legend struct {
	entries []entry
	columns int
	column  vg.Length // the width of a column
}

// entry is a mark and its name.
type entry struct {
	name string
	draw func(c draw.Canvas, point vg.Point)
}

// Sizes of a legend, in points: a line's height, a mark's width, and the space
// between columns.
const (
	legendLine = 14
	legendMark = 20
	legendGap  = 5
)

// add adds the legend below p's title, and returns its height. The plot is at
// least width points wide.
func (l *legend) add(p *plot.Plot, width vg.Length) (height vg.Length) {
	for _, e := range l.entries {
		l.column = max(l.column, legendMark+p.Legend.TextStyle.Width(e.name)+legendGap)
	}
	l.columns = max(1, min(len(l.entries), int(width/l.column)))
	lines := (len(l.entries) + l.columns - 1) / l.columns
	height = vg.Length(lines * legendLine)
	p.Title.Padding += height
	p.Add(l)
	return height
}

// Plot implements plot.Plotter. It draws above the plot's area.
func (l *legend) Plot(c draw.Canvas, p *plot.Plot) {
	style := p.Legend.TextStyle
	style.YAlign = draw.YCenter
	lines := (len(l.entries) + l.columns - 1) / l.columns
	for i, e := range l.entries {
		point := vg.Point{
			X: c.Min.X + vg.Length(i%l.columns)*l.column,
			Y: c.Max.Y + legendLine*(vg.Length(lines-i/l.columns)-0.5) + 4,
		}
		e.draw(c, vg.Point{X: point.X + legendMark/2 - 2, Y: point.Y})
		c.FillText(style, vg.Point{X: point.X + legendMark, Y: point.Y + lift(style)}, e.name)
	}
}

// lift returns how far a text that gonum/plot centres must rise to have its digits
// and capitals in the middle: gonum/plot includes the descenders.
func lift(style text.Style) vg.Length { return style.FontExtents().Descent / 2 }
