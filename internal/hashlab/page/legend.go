package page

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// legend says what a picture's marks mean. It stands in a band of its own between
// the title and the plot, where it covers nothing; gonum/plot's stands in the plot.
type legend struct {
	entries []entry
	columns int
	column  vg.Length // the width of a column
}

// entry is a mark and its name.
type entry struct {
	name string
	draw func(c draw.Canvas, at vg.Point)
}

// Measures of a legend, in points: a line's height, the room for a mark, and that
// between columns.
const (
	legendLine = 14
	legendMark = 20
	legendGap  = 5
)

// add makes room for the legend under p's title, and returns its height. The plot
// is at least width points wide.
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

// Plot implements plot.Plotter. It draws above the plot.
func (l *legend) Plot(c draw.Canvas, p *plot.Plot) {
	style := p.Legend.TextStyle
	style.YAlign = draw.YCenter
	lines := (len(l.entries) + l.columns - 1) / l.columns
	for i, e := range l.entries {
		at := vg.Point{
			X: c.Min.X + vg.Length(i%l.columns)*l.column,
			Y: c.Max.Y + legendLine*(vg.Length(lines-i/l.columns)-0.5) + 4,
		}
		e.draw(c, vg.Point{X: at.X + legendMark/2 - 2, Y: at.Y})
		c.FillText(style, vg.Point{X: at.X + legendMark, Y: at.Y + lift(style)}, e.name)
	}
}

// lift is how far a text that gonum/plot centres has to rise, so that its digits
// and capitals stand in the middle, and not the room for descenders, too.
func lift(style text.Style) vg.Length { return style.FontExtents().Descent / 2 }
